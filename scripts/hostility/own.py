"""Protocols in files of their own, as somebody would write them who has no checkout."""

from pathlib import Path

FIFO = '''\
"""Fifo: the messages of one process are delivered in the order in which they were sent."""

from testbed.protocols import Deliver, Hold, Message, MessageId, Protocol, Send


class Fifo(Protocol):
    """Counts each sender's messages."""

    name = "fifo"

    def __init__(self, place, settings=None):
        super().__init__(place, settings)
        self.delivered = [0] * place.processes
        self.delivered[self.me] = place.base
        self.waiting = {}

    def multicast(self, payload, destinations, now):
        self.delivered[self.me] += 1
        message = Message(self.me, self.delivered[self.me], payload, sent_at=now)
        yield Send(self.place.others, message)
        yield Deliver(message)

    def receive(self, message, sender, now):
        source = message.source
        if message.seq > self.delivered[source] + 1:
            self.waiting[message.id] = message
            yield Hold(message, MessageId(source, message.seq - 1))
            return
        found = message
        while found and found.seq == self.delivered[source] + 1:
            self.delivered[source] += 1
            yield Deliver(found)
            found = self.waiting.pop(MessageId(source, self.delivered[source] + 1), None)
'''
EXPERIMENT = """\
name = "own"

[[protocol]]
name = "./fifo.py:Fifo"

[[protocol]]
name = "timestamp"

[topology]
model = "star"
nodes = 4

[workload]
model = "bursts"
senders = 3
burst = 2
duration_ms = 2
"""


def written(directory: Path, text: str = FIFO, name: str = "fifo.py") -> Path:
    """A protocol's file, and an experiment beside it that names it."""
    (directory / "own.toml").write_text(EXPERIMENT)
    (directory / name).write_text(text)
    return directory / name
