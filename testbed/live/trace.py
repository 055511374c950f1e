"""What happened in a run, step by step, as plain data for a page."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from typing_extensions import override

from testbed.check.memory import MemoryLog
from testbed.live.state import Change, State, changes, state_of, text
from testbed.live.words import Words
from testbed.protocols import (
    Deliver,
    Discard,
    Effect,
    Hold,
    Message,
    Multicast,
    Send,
    SetTimer,
)

MOST_STEPS = 50_000
DONE = {  # what happens to a process from outside, in words
    "crash": "crashes",
    "restart": "starts again, and has forgotten everything",
    "drop": "never gets message {count} from process {sender}: it is dropped",
    "delay": "will get message {count} from process {sender} later: it is delayed",
    "duplicate": "gets message {count} from process {sender} twice",
}


class TraceFullError(Exception):
    """There are more steps than a page can hold."""


@dataclass
class Step:
    """Something that happened to a process, and what the process did."""

    t: int
    node: int
    kind: str  # "start", "send", "receive", "timeout", "join", "leave", or a fault
    words: list[str] = field(default_factory=list)
    copy: int | None = None  # that it received
    sends: list[int] = field(default_factory=list)  # copies
    delivers: list[str] = field(default_factory=list)
    holds: list[tuple[str, str | None]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


@dataclass
class Copy:
    """One copy of a message on its way from a process to another."""

    sender: int
    receiver: int
    name: str
    what: str  # the class of the message
    about: str  # its control information
    bytes: int
    sent: int  # the step
    at: int
    arrived: int | None = None  # when, if it did
    count: int | None = None  # the how many-th of its sender that the receiver's host got
    incarnation: int = 0  # of the receiver
    got: int | None = None  # the step in which the process first received it


class Trace(MemoryLog):
    """Is told what happens, in order; also the log of all processes, for the oracle."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.copies: list[Copy] = []
        self.hops: list[tuple[str, int, int, int, int, int]] = []
        self._open: Step | None = None
        self._words = Words()
        self._states: dict[int, State] = {}
        self._messages: list[Message] = []  # of the copies: their identity must not be used again
        self._under_way: defaultdict[tuple[int, int, int], deque[int]] = defaultdict(deque)
        self._handed: defaultdict[tuple[int, int, int], deque[int]] = defaultdict(deque)

    @property
    def is_open(self) -> bool:
        """Whether a step is under way, to which whatever happens belongs."""
        return self._open is not None

    def begin(self, t: int, node: int, kind: str, what: str) -> None:
        """A step begins; ``what`` is a sentence without its end."""
        if len(self.steps) >= MOST_STEPS:
            raise TraceFullError
        self._open = Step(t, node, kind)
        self._words = Words(what)

    def begin_receipt(self, t: int, node: int, sender: int, message: Message) -> None:
        """A process receives a message that has arrived, perhaps earlier."""
        self.begin(
            t, node, "receive", f"process {node} receives {described(message)} from {sender}"
        )
        handed = self._handed[sender, node, id(message)]
        if handed and self._open is not None:
            # one that was not received yet, if there is one: else a copy comes twice
            number = next((n for n in handed if self.copies[n].got is None), handed[-1])
            self._open.copy = number
            if self.copies[number].got is None:
                self.copies[number].got = len(self.steps)

    def end(self, protocol: Any) -> None:
        """The step is over, and this is what has become of the process."""
        step, self._open = self._open, None
        if step is None:
            return
        before, after = self._states.get(step.node, {}), state_of(protocol)
        self._states[step.node] = after
        step.changes = changes(before, after)
        step.words = self._words.sentences()
        self.steps.append(step)

    def effect(self, effect: Effect) -> None:
        """The process of the open step yields an effect."""
        step = self._open
        if step is None:
            return
        match effect:
            case Send(peers, message) | Multicast(peers, message):
                step.sends += [self._copy(step, peer, message) for peer in peers]
                if peers:
                    self._words.sends(described(message), peers)
            case Deliver(message):
                step.delivers.append(str(message.id))
                self._words.delivers(str(message.id))
            case Hold(message, waits_for):
                step.holds.append((str(message.id), None if waits_for is None else str(waits_for)))
                self._words.holds(*step.holds[-1])
            case Discard(message, reason):
                self._words.says(f"drops {message.id}: {reason}")
            case SetTimer(timer, delay):
                self._words.says(f"sets timer {text(timer)} to {delay / 1e6:g} ms")

    def answer(self) -> None:
        """The application multicasts in the middle of the open step, upon a delivery."""
        self._words.says("its application answers")

    def arrive(
        self, t: int, node: int, sender: int, message: Message, incarnation: int, count: int
    ) -> None:
        """A copy has reached the host of its receiver: this one of its sender's."""
        key = (sender, node, id(message))
        if under_way := self._under_way[key]:
            number = under_way.popleft()
            self._handed[key].append(number)
            copy = self.copies[number]
            copy.arrived, copy.incarnation, copy.count = t, incarnation, count

    def hop(
        self, message: Message, tail: int, head: int, queued: int, start: int, end: int
    ) -> None:
        """A packet crosses a link."""
        if len(self.hops) < 4 * MOST_STEPS:
            self.hops.append((str(message.id), tail, head, queued, start, end))

    def fault(self, t: int, node: int, kind: str, words: str) -> None:
        """Something is done to a process or to the network (node -1) from outside."""
        if len(self.steps) < MOST_STEPS:
            self.steps.append(Step(t, node, kind, [words]))

    @override
    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        super().note(t, node, event, facts)
        told = ", ".join(f"{key} {text(value)}" for key, value in facts.items())
        if self._open is not None:
            self._words.says(f"notes {event}" + (f" ({told})" if told else ""))
            return
        if event == "crash":
            self._states.pop(node, None)
        elif event == "drop":
            self._drop(node, **facts)
        does = DONE.get(event, f"notes {event} ({told})").format(**facts)
        self.fault(t, node, event, f"process {node} {does}")

    def _drop(self, node: int, sender: int, count: int) -> None:
        """The copy that has just arrived is not received; the same message may be sent again."""
        for (source, receiver, _), handed in self._handed.items():
            its = (source, receiver) == (sender, node) and handed
            if its and self.copies[handed[-1]].count == count:
                handed.pop()

    def to_json(self) -> dict[str, Any]:
        """Steps, copies and hops as plain data."""
        return {
            "steps": [asdict(step) for step in self.steps],
            "copies": [asdict(copy) for copy in self.copies],
            "hops": self.hops,
        }

    def _copy(self, step: Step, peer: int, message: Message) -> int:
        number = len(self.copies)
        copy = Copy(
            step.node,
            peer,
            str(message.id),
            type(message).__name__,
            described(message),
            message.size,
            len(self.steps),
            step.t,
        )
        self.copies.append(copy)
        self._messages.append(message)
        self._under_way[step.node, peer, id(message)].append(number)
        return number


def described(message: Message) -> str:
    """A message by its name, and by its class if that says something."""
    kind = type(message).__name__
    own = {
        name: getattr(message, name)
        for cls in type(message).__mro__
        for name in getattr(cls, "__slots__", ())
        if name not in Message.__slots__
    }
    control = ", ".join(f"{key} {text(value)}" for key, value in own.items())
    name = str(message.id) if kind in ("Message", "TimestampMessage") else f"{kind} {message.id}"
    return f"{name} [{control}]" if control else name
