"""A small lab, protocols for it, and a zygote that all tests of a session share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.grade import Grade, Lab, Submission, grade
from testbed.grade.cells import Cells

LAB = """
title = "Causal order"
submission = "protocol.py"
[[tier]]
name = "loads"
kind = "loads"
points = 10
[[tier]]
name = "small worlds"
kind = "explore"
points = 30
nodes = 3
messages = 2
[[tier]]
name = "public seeds"
kind = "fuzz"
points = 20
seeds = 3
[[tier]]
name = "hidden seeds"
kind = "fuzz"
points = 20
seeds = 3
hidden = true
[[tier]]
name = "budgets"
kind = "run"
points = 20
experiment = "budget.toml"
limits = { control_bytes_per_message = 48 }
"""
BUDGET = """
name = "budget"
[topology]
model = "star"
nodes = 4
[protocol]
name = "./protocol.py"
[workload]
model = "script"
send = [{ node = 0, at_ms = 1 }, { node = 1, at_ms = 9 }]
"""
# Vector clocks, in as few lines as possible; ``{…}`` are where tests change it.
CAUSAL = """
import struct
from typing import ClassVar

from testbed.protocols import Deliver, Hold, Message, Protocol, Send
from testbed.protocols.wire import of_kind
{head}

@of_kind(1)
class Stamped(Message):
    clock: tuple

    @property
    def control_size(self):
        return 4 * len(self.clock)

    def encode_control(self):
        return struct.pack(f"!{{len(self.clock)}}I", *self.clock)

    @classmethod
    def decode_control(cls, control, processes):
        return dict(clock=struct.unpack(f"!{{processes}}I", control))


class Causal(Protocol):
    name: ClassVar = "causal"
    messages = (Stamped,)
    {body}

    def __init__(self, place, settings=None):
        super().__init__(place, settings)
        self.clock = [0] * place.processes
        self.waiting = []

    def multicast(self, payload, destinations, now):
        stamp = tuple(self.clock)
        self.clock[self.me] += 1
        message = Stamped(self.me, self.clock[self.me], payload, now, clock=stamp)
        yield Send(self.place.others, message)
        yield Deliver(message)

    def receive(self, message, sender, now):
        {receive}
        if message.seq <= self.clock[message.source] or message.id in [m.id for m in self.waiting]:
            return
        self.waiting.append(message)
        if not self.ready(message):
            yield Hold(message, None)
        while ready := next(filter(self.ready, self.waiting), None):
            self.waiting.remove(ready)
            self.clock[ready.source] += 1
            yield Deliver(ready)

    def ready(self, message):
        return {ready}
"""
READY = (
    "message.seq == self.clock[message.source] + 1 "
    "and all(a <= b for a, b in zip(message.clock, self.clock))"
)

Grading = Callable[[str], Grade]


def causal(head: str = "", body: str = "", receive: str = "pass", ready: str = READY) -> str:
    """The text of the protocol, with changes."""
    return CAUSAL.format(head=head, body=body, receive=receive, ready=ready)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """The lab."""
    directory = tmp_path / "lab"
    directory.mkdir()
    (directory / "lab.toml").write_text(LAB)
    (directory / "budget.toml").write_text(BUDGET)
    return Lab.read(directory)


@pytest.fixture(scope="session")
def cells() -> Iterator[Cells]:
    """One zygote for all."""
    with Cells() as cells:
        yield cells


@pytest.fixture
def grading(lab: Lab, cells: Cells) -> Grading:
    """Grades a text."""
    return lambda text: grade(lab, Submission("alice", {"protocol.py": text}), cells)
