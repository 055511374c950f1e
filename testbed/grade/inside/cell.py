"""One process behind the wall: it loads a submission and does what its protocol does, for whoever asks.

Each request is a list: what to do, and arguments. A call of the protocol is answered with what it
yields, up to a ``Deliver`` or to the end: the application acts during a delivery, so the grader then
has its turn, and says ``go`` when the protocol may go on. Messages are bytes here, as on a network.

In the mode of the explorer a call begins with a state by its number: a copy of that state is made,
the protocol is called on it, and the number of the state that it ends in is told. What is told is
what is explored: a cell that calls two states the same has a protocol that behaves the same in both."""

import copy
import os
import random
import signal
import time
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from testbed.errors import UserError
from testbed.explore.freeze import Numbered, freeze
from testbed.grade.inside.frames import Frames
from testbed.grade.inside.imports import refused
from testbed.grade.inside.seal import Limits, seal
from testbed.node.effects import misuse
from testbed.node.encoding import EncodingCheck
from testbed.node.shared import SharedState
from testbed.plugins.blame import last_line, lines_of, quoted, words, yielding
from testbed.plugins.limits import StuckError, limited, time_limit
from testbed.plugins.source import Source
from testbed.protocols import (
    CancelTimer,
    Codec,
    Deliver,
    Discard,
    Hold,
    Multicast,
    Place,
    Protocol,
    Send,
    SetTimer,
)

CALL_S = 4.0  # of processor time; where Python can be interrupted, ``time_limit`` is earlier
BATCH = 256  # effects in one answer
LONGEST_LABEL = 40
TOLD = ("needs_overlay", "takes_subsets", "needs_groups", "needs_everybody", "rests", "optimistic")
_END = object()


class Copied(random.Random):
    """Random numbers with a fast copy."""

    def __deepcopy__(self, memo: object) -> "Copied":
        copied = Copied(0)
        copied.setstate(self.getstate())
        return copied


def live(descriptor: int, memory_mb: int, processor_s: int) -> None:
    """Serve the other end of the pipe until it closes."""
    frames = Frames(lambda count: os.read(descriptor, count), lambda d: os.write(descriptor, d))
    cell = Cell()
    _even_out()
    with time_limit():
        seal(Limits(memory_mb, processor_s))
        frames.put("sealed")
        while True:
            frames.put(cell.answer(frames.get()))


class Cell:
    """A submission's protocol: one process of it, or all states of those that are explored."""

    def __init__(self) -> None:
        self.kind: type[Protocol] | None = None
        self.protocol: Protocol | None = None
        self.states: Numbered[Protocol] = Numbered()
        self.exploring = False
        self._calls: list[Iterator[Any]] = []  # that are going on, the innermost last
        self._doing = "its file"  # or a method
        self._done = 0  # calls
        self._labels: dict[Hashable, str] = {}
        self._timers: dict[str, Hashable] = {}

    def answer(self, request: list[Any]) -> list[Any]:
        """Do what is asked, and tell of it; whatever the submission raises is told too."""
        what, *arguments = request
        try:
            signal.setitimer(signal.ITIMER_PROF, CALL_S)  # kills it, wherever it is stuck
            return self._do(what, arguments)
        except MemoryError:
            return ["failed", "it needs more memory than it may have"]
        except StuckError:
            # Where it is stuck is not told, for that depends on the machine.
            return ["stuck", f"{self._doing} does not come to an end"]
        except UserError as error:
            return ["failed", str(error)]
        except BaseException as error:  # anything at all
            return ["failed", f"{_words(error)}{quoted(last_line(lines_of(error)))}"]

    @limited
    def _do(self, what: str, arguments: list[Any]) -> list[Any]:
        match what:
            case "load":
                return self._load(*arguments)
            case "make":
                return self._make(*arguments)
            case "call":
                state, name, *rest = arguments
                return self._call(state, name, rest)
            case "go":
                return self._go([])
            case _:
                return ["failed", f"no such request: {what}"]

    def _load(self, file: str, text: str, taken: list[str]) -> list[Any]:
        """Execute the file; what its class says of itself."""
        kind = self.kind = Source(Path("/") / file, text, "").load(taken, refused)
        self._shared = SharedState(kind)
        facts = {name: bool(getattr(kind, name)) for name in TOLD}
        facts["needs_fifo"] = bool(kind.needs_fifo(kind.Settings()))
        return ["loaded", kind.name, facts, kind.__name__]

    def _make(self, place: dict[str, Any], exploring: bool) -> list[Any]:
        """Make a process; there may be several in one cell."""
        assert self.kind is not None
        rng = Copied(0)
        version, numbers, gauss = place.pop("rng")
        rng.setstate((version, tuple(numbers), gauss))
        groups = tuple(map(frozenset, place.pop("groups")))
        domains = tuple(map(tuple, place.pop("domains")))
        near = tuple(place.pop("neighbours"))
        made = Place(rng=rng, groups=groups, domains=domains, neighbours=near, **place)
        protocol = self.protocol = self.kind(made, self.kind.Settings())
        self.exploring = exploring
        self._encoding = EncodingCheck(protocol)
        self._codec: Codec = self.kind.codec(0, made.processes)
        return ["made", *self._state(), bool(protocol.multicasts())]

    def _call(self, state: int | None, name: str, arguments: list[Any]) -> list[Any]:
        """Call the protocol; ``state`` if this call is not made during another."""
        if state is not None:
            self._calls.clear()
            before = self.states[state]
            self.protocol = copy.deepcopy(before) if self.exploring else before
        protocol, self._doing = self.protocol, f"{name}()"
        assert protocol is not None
        match name, arguments:
            case "multicast", [payload, to, now]:
                to = None if to is None else frozenset(to)
                effects: Any = protocol.multicast(bytes.fromhex(payload), to, now)
            case "receive", [data, sender, now]:
                effects = protocol.receive(self._codec.decode(bytes.fromhex(data)), sender, now)
            case "timeout", [label, now]:
                effects = protocol.timeout(self._timers[label], now)
            case _:
                effects = protocol.start(*arguments)
        if effects is None:
            return ["failed", f"{name}() returned None instead of effects: is a `yield` missing?"]
        self._calls.append(iter(effects))
        return self._go([])

    def _go(self, told: list[Any]) -> list[Any]:
        """Let the innermost call go on, up to a delivery or to its end."""
        effects = self._calls[-1]
        assert self.protocol is not None
        me, processes = self.protocol.me, self.protocol.place.processes
        while (effect := next(effects, _END)) is not _END:
            if wrong := misuse(effect, me, processes):
                return ["failed", f"{wrong}{quoted(yielding(effects))}"]
            if plain := self._plain(effect):
                told.append(plain)
            if isinstance(effect, Deliver) or len(told) >= BATCH:
                return ["more", told, bool(self.protocol.busy())]
        self._calls.pop()
        self._done += 1
        if self._done & (self._done - 1) == 0:  # the first, second, fourth call and so on
            self._shared.check()
        return ["done", told, *self._state()]

    def _state(self) -> tuple[int, bool]:
        """The number of the state that the process is in, or of the process; whether it is busy."""
        protocol = self.protocol
        assert protocol is not None
        busy = bool(protocol.busy())
        if self._calls:
            return 0, busy
        key = freeze(vars(protocol)) if self.exploring else id(protocol)
        return self.states.number(protocol, key), busy

    def _plain(self, effect: Any) -> list[Any] | None:
        """An effect as it is told; counters and notes are nobody's business here."""
        match effect:
            case Send(peers, message) | Multicast(peers, message):
                (self._encoding.check if self.exploring else self._encoding.sample)(message)
                data = self._codec.encode(message).hex()
                return ["m" if isinstance(effect, Multicast) else "s", list(peers), data]
            case Deliver(message):
                return ["d", message.source, message.seq, message.payload.hex()]
            case Hold(message, waits_for):
                return ["h", message.source, message.seq, waits_for and list(waits_for)]
            case Discard(message, reason):
                return ["x", message.source, message.seq, str(reason)[:LONGEST_LABEL]]
            case SetTimer(timer, delay):
                return ["t", self._label(timer), delay]
            case CancelTimer(timer):
                return ["c", self._label(timer)]
        return None

    def _label(self, timer: Hashable) -> str:
        """What the grader calls a timer; different ones have different labels."""
        if timer not in self._labels:
            label = str(timer)[:LONGEST_LABEL]
            if label in self._timers:
                label += f" ({len(self._labels) + 1})"
            self._labels[timer], self._timers[label] = label, timer
        return self._labels[timer]


def _words(error: BaseException) -> str:
    if isinstance(error, PermissionError):
        return f"it does what no protocol may do: {words(error)}"
    return words(error)


def _even_out() -> None:
    """Refuse the clock, and give everybody the same random numbers: two runs must be equal."""

    def refuse(*_: Any) -> NoReturn:
        raise PermissionError("it reads the clock; a protocol is told the time as `now`")

    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"):
        setattr(time, name, refuse)
    seeded = random.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        seeded(self, 0 if a is None else a, version)

    random.Random.seed = seed  # type: ignore[method-assign]
