"""Event logs, read part by part into tables of events."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from testbed.digest.arrays import integers
from testbed.digest.steps import Facts, Piece

LINE = pa.schema(
    [
        *(("t", pa.int64()), ("node", pa.int32()), ("event", pa.string()), ("source", pa.int32())),
        *(("seq", pa.int64()), ("to", pa.list_(pa.int32())), ("payload", pa.int32())),
        *(("control", pa.int32()), ("for", pa.list_(pa.int64()))),
    ]
)
INT32 = 1 << 31
WEIGHT = 10  # how much longer than a capture


class Lines(NamedTuple):
    """The lines of an event log that begin in a range of its bytes."""

    file: Path
    start: int
    end: int

    def read(self) -> bytes:
        """These lines as they are, the last with its end."""
        with self.file.open("rb") as file:
            if self.start:
                file.seek(self.start - 1)
                file.readline()
            begin = file.tell()
            lines = file.read(max(0, self.end - begin))
            lines += file.readline() if lines and not lines.endswith(b"\n") else b""
        return lines + b"\n" if lines and not lines.endswith(b"\n") else lines


@dataclass(frozen=True)
class LogPart:
    """Lines of event logs of a run: nodes have small logs, of which many are read at once."""

    run: int
    lines: tuple[Lines, ...]

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(lines.end - lines.start for lines in self.lines)

    @property
    def weight(self) -> int:
        """JSON takes longer to read."""
        return WEIGHT * self.size

    def pieces(self, facts: Facts) -> Iterator[Piece]:
        """The events by their nodes; every bucket gets all multicasts, to know when they were."""
        events, bad = parse(b"".join(lines.read() for lines in self.lines), facts.processes)
        yield facts.total("bad_lines", pa.table({"lines": [bad]}))
        yield from facts.spread("node", "events", events, integers(events, "node"))
        own = pc.and_(pc.equal(events["event"], "send"), pc.equal(events["node"], events["source"]))
        sends = events.filter(own)
        for bucket in range(facts.buckets["node"]):
            yield from facts.spread("node", "sends", sends, np.full(len(sends), bucket))


def log_parts(run: int, logs: Iterable[Path], most: int) -> Iterator[LogPart]:
    """The lines of a run's logs, so many bytes at a time."""
    part: list[Lines] = []
    room = most
    for log in logs:
        start, size = 0, log.stat().st_size
        while start < size:
            end = min(size, start + room)
            part.append(Lines(log.absolute(), start, end))
            room -= end - start
            start = end
            if not room:
                yield LogPart(run, tuple(part))
                part, room = [], most
    if part:
        yield LogPart(run, tuple(part))


def parse(lines: bytes, processes: int) -> tuple[pa.Table, int]:
    """The events of these lines, and how many lines cannot be used."""
    try:
        options = pj.ParseOptions(explicit_schema=LINE, unexpected_field_behavior="ignore")
        reading = pj.ReadOptions(use_threads=False, block_size=max(1 << 20, len(lines) + 1))
        table = pj.read_json(BytesIO(lines), reading, options) if lines.strip() else _rows([])
        events, usable = _events(table, processes), _usable(table, processes)
    except pa.ArrowInvalid:  # a line is damaged: look at each
        table = _rows([_fields(line) for line in lines.splitlines() if line.strip()])
        events, usable = _events(table, processes), _usable(table, processes)
    return events.filter(usable), len(events) - pc.sum(usable).as_py() if len(events) else 0


def _rows(lines: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(lines, LINE)


def _fields(line: bytes) -> dict[str, Any]:
    """What a line says, as far as it is what such a line should say."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    kinds = {"t": 1 << 63, "seq": 1 << 63, "event": None, "to": INT32, "for": 1 << 63}
    return {
        name: told[name]
        for name in (LINE.names if isinstance(told, dict) else ())
        if name in told and _fits(told[name], LINE.field(name).type, kinds.get(name, INT32))
    }


def _fits(value: Any, kind: pa.DataType, most: int | None) -> bool:
    if pa.types.is_list(kind):
        least = 0 if most == INT32 else 2
        return (
            isinstance(value, list)
            and len(value) >= least
            and all(_fits(each, kind.value_type, most) for each in value)
        )
    if most is None:
        return isinstance(value, str)
    return isinstance(value, int) and not isinstance(value, bool) and -most <= value < most


def _usable(table: pa.Table, processes: int) -> pa.ChunkedArray:
    there = pc.and_(pc.is_valid(table["t"]), pc.is_valid(table["event"]))
    known = pc.and_(pc.greater_equal(table["node"], 0), pc.less(table["node"], processes))
    return pc.and_(there, pc.fill_null(known, False))


def _events(table: pa.Table, processes: int) -> pa.Table:
    everybody = pc.fill_null(pc.list_value_length(table["to"]), processes)
    sent = pc.equal(table["event"], "send")
    return pa.table(
        {
            "node": table["node"],
            "at": table["t"],
            "event": table["event"],
            **{name: table[name] for name in ("source", "seq", "payload", "control")},
            "destinations": pc.if_else(sent, everybody, pa.scalar(None, pa.int32())),
            "for_source": pc.list_element(table["for"], 0).cast(pa.int32()),
            "for_seq": pc.list_element(table["for"], 1),
        }
    )
