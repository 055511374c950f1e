"""A protocol whose code is behind the wall, as a class that explorer, simulator and oracle drive like
any.

Everything that is judged is on this side: the network and its clock, what was sent and when, who
delivered what. A cell is believed only in what a process can decide by itself: which bytes it sends
to whom, what it delivers, which timers it sets. In particular

- what a protocol needs and promises is what the lab says, not what its class says;
- messages are bytes; their size is counted here, and a payload that is not the application's counts
  as control information; the time at which a message was multicast is written into its header here;
- counters and notes of the protocol, which could pass for figures and for events of the log, are not
  asked for;
- where processes are simulated each has a cell of its own, so that they share nothing. All that is
  explored is in one cell; but there a state and a stimulus have one answer, asked for once, and what
  was answered *is* the protocol that is explored."""

from __future__ import annotations

import copy
from binascii import crc_hqx
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from testbed.errors import ProtocolError
from testbed.grade.cells import MEDDLES, Cell, CellError, Cells, harmless
from testbed.node.effects import MisuseError, misuse
from testbed.plugins.limits import StuckError
from testbed.plugins.source import Source
from testbed.protocols import (
    CancelTimer,
    Codec,
    Deliver,
    Discard,
    Effect,
    Effects,
    Hold,
    Message,
    MessageId,
    Multicast,
    Place,
    Protocol,
    Send,
    SetTimer,
    WireError,
)
from testbed.protocols.wire import CHECK, CHECK_AT, HEADER, decode_header, of_kind

MEMORY_MB, EXPLORING_MEMORY_MB = 320, 512
PROCESSOR_S, EXPLORING_PROCESSOR_S = 20, 60
MOST_BYTES = 64 << 20  # that one run may hand to the network
LONGEST_DELAY = 10**15  # of a timer, in nanoseconds


class Said(NamedTuple):
    """What an application multicast, and when."""

    at: int
    payload: bytes


@of_kind(0)
class RemoteMessage(Message):
    """A message of a submission: its bytes, of which only the header is looked at."""

    data: bytes
    control: int = 0

    @property
    def control_size(self) -> int:
        """All bytes but the header and what the application said."""
        return self.control

    @property
    def size(self) -> int:
        """What travels."""
        return len(self.data)


class RemoteCodec(Codec):
    """Nothing is left to encode: the cell has done it, and what it left out is gone."""

    _encoded: RemoteMessage

    def encode(self, message: Message) -> bytes:
        """What the cell has encoded."""
        assert isinstance(message, RemoteMessage)
        self._encoded = message
        return message.data

    def decode(self, data: bytes) -> Message:
        """The message that was encoded last, for nobody decodes another here."""
        return self._encoded


class Bench:
    """Where a submission is tried: its text, the cells of the current run, what was said in it."""

    def __init__(self, cells: Cells, file: str, text: str, taken: list[str]) -> None:
        self._cells, self._file, self._text, self._taken = cells, file, text, taken
        self.source: Source | None = None  # once it was loaded
        self.exploring = False
        self.together = False  # all processes of a run in one cell: fast, where nothing is judged
        self.stuck = ""  # how a call did not come to an end, if one did not
        self.used_s = 0.0  # processor time of cells that have ended
        self.said: dict[MessageId, Said] = {}
        self._bytes = 0
        self._living: list[Cell] = []

    def __reduce__(self) -> Any:
        raise TypeError("a bench stays where it is")

    def load(self) -> tuple[str, dict[str, bool]]:
        """What the protocol is called, and what it says of itself, in a cell for nothing else."""
        try:
            name, facts, cls = self._loaded(self._cell())[1:]
            if not (isinstance(cls, str) and cls.isidentifier()):
                raise CellError(f"its class is called {harmless(cls)!r}")
            self.source = Source(Path("/") / self._file, self._text, cls)
            return str(name), {str(key): bool(value) for key, value in dict(facts).items()}
        except (ValueError, TypeError):
            raise CellError(MEDDLES) from None
        finally:
            self.clear()

    def clear(self) -> None:
        """End the run that was going on."""
        while self._living:
            self.used_s += self._living.pop().end()[1]
        self.said.clear()
        self._bytes = 0

    def home(self, place: Place) -> Cell:
        """The cell for a process; with the first process another run begins."""
        if place.me == 0 and place.incarnation == 0:
            self.clear()
        if (self.exploring or self.together) and self._living:
            return self._living[0]
        cell = self._cell()
        self._loaded(cell)
        return cell

    def message(self, data: bytes) -> RemoteMessage:
        """A message that a cell hands to the network."""
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            raise MisuseError(f"it sends more than {MOST_BYTES >> 20} MB in a short run")
        header = decode_header(data)
        payload = data[HEADER.size + header.control_size :]
        said = self.said.get(MessageId(header.source, header.seq))
        at = header.sent_at if said is None else said.at
        if at != header.sent_at:
            data = _sent_at(data, at)
        if said is None or payload != said.payload:
            payload = b""  # not what an application said, so it is control information
        control = len(data) - HEADER.size - len(payload)
        return RemoteMessage(
            header.source, header.seq, payload, at, header.group, data=data, control=control
        )

    def delivery(self, name: MessageId, payload: bytes) -> Message:
        """A message that is delivered, as it was multicast; the oracle knows if it never was."""
        said = self.said.get(name)
        if said is not None and said.payload != payload:
            raise MisuseError(f"it delivers {name} with another payload than was multicast")
        return Message(*name, payload, 0 if said is None else said.at)

    def _cell(self) -> Cell:
        how = (MEMORY_MB, PROCESSOR_S)
        if self.exploring or self.together:
            how = (EXPLORING_MEMORY_MB, EXPLORING_PROCESSOR_S)
        cell = self._cells.cell(*how)
        self._living.append(cell)
        return cell

    def _loaded(self, cell: Cell) -> list[Any]:
        return cell.ask("load", self._file, self._text, self._taken)


class Remote(Protocol):
    """One process of a submission's protocol; ``stand_in_for`` derives the class for a submission."""

    bench: ClassVar[Bench]
    fifo: ClassVar[bool] = False
    messages = (RemoteMessage,)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        try:
            self._cell = self.bench.home(place)
            answer = self._cell.ask("make", _plain(place), self.bench.exploring)
            _, self._state, self._busy, self._multicasts = answer
        except CellError as error:
            raise ProtocolError(f"{self.name} fails as it is made: {error}") from None
        self._seq = place.base
        self._depth = 0  # calls that are going on

    def __deepcopy__(self, memo: object) -> Remote:
        return copy.copy(self)

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Remember what the application says, and let the cell handle it."""
        self._seq += 1
        self.bench.said[MessageId(self.me, self._seq)] = Said(now, payload)
        to = None if destinations is None else sorted(destinations)
        return _effects(self, "multicast", payload.hex(), to, now)

    def receive(self, message: Any, sender: int, now: int) -> Effects:
        """Hand the bytes over."""
        return _effects(self, "receive", message.data.hex(), sender, now)

    def start(self, now: int) -> Effects:
        """Begin."""
        return _effects(self, "start", now)

    def timeout(self, timer: Hashable, now: int) -> Effects:
        """Timers are known by their labels."""
        return _effects(self, "timeout", timer, now)

    @classmethod
    def needs_fifo(cls, settings: Any) -> bool:
        """As the lab says."""
        return cls.fifo or cls.needs_overlay

    def busy(self) -> bool:
        """As the cell said last."""
        return bool(self._busy)

    def multicasts(self) -> bool:
        """As the cell said at the beginning."""
        return bool(self._multicasts)

    @classmethod
    def codec(cls, run: int, processes: int) -> Codec:
        """Messages are bytes already."""
        return RemoteCodec(cls.wire_id, cls.messages, run, processes)


def stand_in_for(bench: Bench, name: str, promises: dict[str, bool]) -> type[Remote]:
    """The class for a submission whose protocol is called so, in a lab that asks for these promises."""
    promises = dict(promises)
    fifo = promises.pop("needs_fifo", False)
    return type("Submitted", (Remote,), {"name": name, "bench": bench, "fifo": fifo, **promises})


def _plain(place: Place) -> dict[str, Any]:
    return {
        "me": place.me,
        "processes": place.processes,
        "neighbours": place.neighbours,
        "rng": place.rng.getstate(),
        "incarnation": place.incarnation,
        "groups": [sorted(group) for group in place.groups],
        "domains": place.domains,
    }


def _sent_at(data: bytes, at: int) -> bytes:
    """A message with another time in its header."""
    *fields, _, length = HEADER.unpack_from(data)
    changed = bytearray(HEADER.pack(*fields, at, length) + data[HEADER.size :])
    CHECK.pack_into(changed, CHECK_AT, 0)
    CHECK.pack_into(changed, CHECK_AT, crc_hqx(changed, 0))
    return bytes(changed)


def _effects(remote: Remote, *call: Any) -> Iterator[Effect]:
    """The effects of one call, each when it is its turn."""
    cell = remote._cell
    state = None if remote._depth else remote._state
    remote._depth += 1
    request: tuple[Any, ...] = ("call", state, *call)
    while True:
        try:
            answer = cell.ask(*request)
            effects = [_effect(remote.bench, plain) for plain in answer[1]]
            remote._busy = bool(answer[-1])
            if answer[0] == "done" and remote._depth == 1:
                remote._state = int(answer[2])
        except CellError as error:
            if error.stuck:
                remote.bench.stuck = str(error)
                raise StuckError(str(error)) from None
            raise MisuseError(str(error)) from None
        except (WireError, ValueError, TypeError, IndexError, KeyError, AttributeError):
            raise MisuseError(MEDDLES) from None
        for effect in effects:
            if wrong := misuse(effect, remote.me, remote.place.processes):
                raise MisuseError(wrong)
            yield effect
        if answer[0] == "done":
            remote._depth -= 1
            return
        request = ("go",)


def _effect(bench: Bench, plain: Any) -> Effect:
    match plain:
        case ["s" | "m" as how, [*peers], str(data)] if all(type(peer) is int for peer in peers):
            kind = Send if how == "s" else Multicast
            return kind(tuple(peers), bench.message(bytes.fromhex(data)))
        case ["d", int(source), int(seq), str(payload)]:
            return Deliver(bench.delivery(MessageId(source, seq), bytes.fromhex(payload)))
        case ["h", int(source), int(seq), None]:
            return Hold(Message(source, seq), None)
        case ["h", int(source), int(seq), [int(other), int(number)]]:
            return Hold(Message(source, seq), MessageId(other, number))
        case ["x", int(source), int(seq), str(reason)]:
            return Discard(Message(source, seq), reason[:40])
        case ["t", str(label), int(delay)] if 0 <= delay <= LONGEST_DELAY:
            return SetTimer(label[:60], delay)
        case ["c", str(label)]:
            return CancelTimer(label[:60])
    raise ValueError(plain)
