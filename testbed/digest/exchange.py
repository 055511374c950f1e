"""Pieces on their way from one step to the next: in files that all of Spark's machines see.

They see the tables that are written, so this is beside them. Moved by Spark itself, a piece would be
copied seven times between Python, Java and files; here a task writes one file, and the next map their
parts of it into memory. Spark moves only the word of which piece is where, and what is for the driver.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from testbed.digest.steps import TOTALS, Key, Piece, Tables
from testbed.runs.parts import whole


class Stored(NamedTuple):
    """A piece, or where it is."""

    origin: int  # the number of what it comes from: pieces of a role are joined in this order
    key: Key
    role: str
    rows: pa.Table | None  # of a piece for the driver
    file: Path
    at: int
    size: int  # in bytes


def store(file: Path, pieces: Iterable[tuple[int, Piece]]) -> list[Stored]:
    """Write pieces, with the numbers of what they come from, and say where they are."""
    found = []
    with whole(file) as part, pa.OSFile(str(part), "wb") as sink:
        for origin, (key, role, rows) in pieces:
            at = sink.tell()
            if key.step != TOTALS:
                with pa.ipc.new_stream(sink, rows.schema) as stream:
                    stream.write_table(rows)
            told = rows if key.step == TOTALS else None
            found.append(Stored(origin, key, role, told, file, at, sink.tell() - at))
    return found


def load(pieces: Iterable[Stored]) -> Tables:
    """The rows of pieces that belong together, by role."""
    roles: dict[str, list[pa.Table]] = {}
    for piece in sorted(pieces, key=lambda piece: piece.origin):
        roles.setdefault(piece.role, []).append(_rows(piece))
    return {role: pa.concat_tables(rows).combine_chunks() for role, rows in roles.items()}


def _rows(piece: Stored) -> pa.Table:
    if piece.rows is not None:
        return piece.rows
    with pa.memory_map(str(piece.file)) as file:
        file.seek(piece.at)
        return pa.ipc.open_stream(file.read_buffer(piece.size)).read_all()
