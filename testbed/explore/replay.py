"""Plays an execution again, on fresh processes and channels, for the oracle and the diagram."""

from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from testbed.check import Event, Verdict, check_events
from testbed.explore.freeze import freeze
from testbed.explore.process import Factory, Fire, Receive, Say
from testbed.explore.recorder import Answers, Destinations, Reaction, Recorder
from testbed.explore.world import Transition
from testbed.protocols import Message, MessageId, Place

ENOUGH = 1_000  # steps after which a protocol that never rests is stopped


class Moment(NamedTuple):
    """A stimulus of a process, and what it did."""

    process: int
    did: Reaction
    sender: int | None = None
    received: MessageId | None = None
    timer: Hashable = None

    @property
    def delivered(self) -> list[MessageId]:
        """The messages that the process delivered, in order."""
        return [act.name for act in self.did.events if act.kind == "deliver"]

    @property
    def multicast(self) -> list[MessageId]:
        """The messages that the application multicast, in order."""
        return [act.name for act in self.did.events if act.kind == "send"]


class Replay:
    """Processes and channels that are driven step by step, with all moments so far."""

    def __init__(self, make: Factory, places: Sequence[Place]) -> None:
        self.moments: list[Moment] = []
        self.channels: defaultdict[tuple[int, int], deque[Message]] = defaultdict(deque)
        self._recorders = [Recorder(make(place)) for place in places]
        for process, recorder in enumerate(self._recorders):
            did = recorder.start()
            if did != Reaction():
                self._add(Moment(process, did))
            if did.failure:
                break

    def play(self, path: Sequence[Transition], messages: Sequence[Message]) -> None:
        """Take the transitions of a search, which knows messages by number."""
        for step in path:
            answers = step.outcome.answers
            match step.stimulus:
                case Receive(sender, number):
                    queue = self.channels[sender, step.process]
                    wanted = freeze(messages[number])
                    place = [freeze(message) for message in queue].index(wanted)
                    self.hand_over(sender, step.process, place, answers)
                case Fire(timer):
                    self.fire(step.process, timer, answers)
                case Say(to):
                    self.say(step.process, to, answers)

    def say(self, process: int, to: Destinations = None, answers: Answers = ()) -> None:
        """Have a process multicast."""
        self._add(Moment(process, self._recorders[process].say(to, answers)))

    def hand_over(self, sender: int, peer: int, place: int = 0, answers: Answers = ()) -> None:
        """Hand over the first message of a channel, or one further back."""
        queue = self.channels[sender, peer]
        message = queue[place]
        del queue[place]
        did = self._recorders[peer].receive(message, sender, answers)
        self._add(Moment(peer, did, sender, message.id))

    def fire(self, process: int, timer: Hashable, answers: Answers = ()) -> None:
        """Let a timer expire."""
        did = self._recorders[process].fire(timer, answers)
        self._add(Moment(process, did, timer=timer))

    def finish(self, first: int = 0) -> None:
        """Hand over all that is in transit, to one process first; then let timers expire."""
        for _ in range(ENOUGH):
            busy = sorted(ends for ends, queue in self.channels.items() if queue)
            if busy:
                self.hand_over(*min(busy, key=lambda ends: ends[1] != first))
                continue
            armed = [(p, t) for p, r in enumerate(self._recorders) for t in r.timers]
            if not armed:
                return
            self.fire(*armed[0])

    def judge(self) -> Verdict:
        """The verdict of the oracle."""
        logs: dict[int, list[Event]] = {p: [] for p in range(len(self._recorders))}
        for moment in self.moments:
            logs[moment.process] += [Event(kind, *name, to) for kind, name, to in moment.did.events]
        return check_events(logs, logs)

    def _add(self, moment: Moment) -> None:
        self.moments.append(moment)
        for peer, message in moment.did.sends:
            self.channels[moment.process, peer].append(message)
