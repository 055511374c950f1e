"""Pieces that one step leaves for another."""

from pathlib import Path

import pyarrow as pa

from testbed.digest.exchange import load, store
from testbed.digest.steps import TOTALS, Key, Piece


def test_pieces_are_found_as_they_were_left_in_the_order_of_what_they_come_from(
    tmp_path: Path,
) -> None:
    rows = pa.table({"at": [5, None, 7, 8], "name": ["a", "b", None, "d"], "is": [True] * 4})
    here, there = Key(0, "node", 0), Key(1, "link", 3)
    one = store(
        tmp_path / "one",
        [
            (2, Piece(here, "events", rows.slice(1, 2))),
            (2, Piece(there, "hops", rows)),
            (2, Piece(Key(0, TOTALS, 0), "nodes", rows)),
        ],
    )
    two = store(tmp_path / "two", [(1, Piece(here, "events", rows.slice(3)))])
    assert [piece.key.step for piece in one + two] == ["node", "link", TOTALS, "node"]
    found = load([one[0], two[0], one[1], one[2]])
    assert found["events"].to_pylist() == [
        *rows.slice(3).to_pylist(),
        *rows.slice(1, 2).to_pylist(),
    ]
    assert found["hops"].equals(rows)
    assert found["nodes"].equals(rows)
    assert one[0].size < one[1].size  # of a slice nothing else is written
    assert one[2].size == 0  # it is told
