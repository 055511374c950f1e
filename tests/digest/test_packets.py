"""Hops and links as the steps of the digest find them, against loops over the same packets."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from testbed.digest.links import longest_queue, starts
from testbed.digest.logs import log_parts, parse
from testbed.digest.packets import (
    FIRST_HOST_IP,
    HOST,
    NO_HEADERS,
    attributed,
    datagram_step,
    hops_of,
)
from testbed.digest.steps import Facts

SWITCHES, PACKETS = 4, 3000
Row = dict[str, int | None]


@pytest.fixture(params=[1, 2, 3])
def captured(request: pytest.FixtureRequest) -> list[Row]:
    """What random switches saw of a few datagrams: fragments, duplicates, losses, and equal times."""
    random = np.random.default_rng(request.param)
    rows: list[Row] = []
    for number, at in enumerate(np.sort(random.integers(0, 600, PACKETS)).tolist()):
        tail = int(random.integers(HOST, SWITCHES))
        fragment = int(random.choice([0, 1480, 2960]))
        first = tail == HOST and fragment == 0
        row: Row = {"at": at, "tail": tail, "head": int(random.integers(SWITCHES))}
        row |= {"pair": int(random.integers(3)) << 32 | 5, "identification": number % 7}
        row |= {"fragment": fragment, "bytes": int(random.integers(60, 1514))}
        rows.append(row | {"source": number if first else None})
    # Of packets in one moment the first fragment counts for all, and arrivals come before departures.
    return sorted(rows, key=lambda row: (row["at"], row["tail"] != HOST or row["fragment"] != 0))


def hops(rows: list[Row]) -> Iterator[Row]:
    """Every hop as the digest finds it."""
    places = {key: place for place, key in enumerate({(row["tail"], row["head"]) for row in rows})}
    tails, heads = np.array([*places]).T
    kept = ("at", "pair", "identification", "fragment", "bytes")
    packets = [
        {name: row[name] for name in kept}
        | {"interface": places[row["tail"], row["head"]], "first": row["source"] is not None}
        for row in rows
    ]
    sources = [row["source"] for row in rows if row["source"] is not None]
    found = attributed(pa.Table.from_pylist(packets), tails, heads)
    carried, queued = hops_of(found)
    names = ("at", "tail", "head", "pair", "identification", "fragment", "bytes", "header")
    columns = [getattr(found, name)[carried].tolist() for name in names]
    for *values, header, since in zip(*columns, queued.tolist(), strict=True):
        source = sources[header] if header >= 0 else None
        yield {**dict(zip(names, values, strict=False)), "source": source, "queued": since}


def by_loop(rows: list[Row]) -> Iterator[Row]:
    """Every hop, with the message of the packet and when it was queued."""
    messages: dict[tuple[int | None, ...], int | None] = {}
    arrivals: dict[tuple[int | None, ...], int | None] = {}
    for moment in sorted({row["at"] or 0 for row in rows}):
        now = [row for row in rows if row["at"] == moment]
        for row in now:
            name = row["pair"], row["identification"]
            if row["source"] is not None:
                messages[name] = row["source"]
            arrivals[(*name, row["fragment"], row["head"])] = moment
        for row in now:
            name = row["pair"], row["identification"]
            queued = arrivals.get((*name, row["fragment"], row["tail"]))
            if queued is not None:
                yield {**row, "source": messages.get(name), "queued": queued}


def test_hops_and_their_messages_are_what_a_loop_finds(captured: list[Row]) -> None:
    columns = [
        "at",
        "tail",
        "head",
        "pair",
        "identification",
        "fragment",
        "bytes",
        "source",
        "queued",
    ]

    def sort(rows: list[Row]) -> list[tuple[int, ...]]:
        return sorted(tuple(-9 if (v := row[c]) is None else v for c in columns) for row in rows)

    expected = sort(list(by_loop(captured)))
    assert sort(list(hops(captured))) == expected
    assert 100 < len(expected) < PACKETS
    assert len({row[7] for row in expected}) > 50


def test_packets_without_a_message_are_hops_like_others(tmp_path: Path) -> None:
    """Without their first fragments nothing is known of messages, and pieces must fit the others."""
    captured = {
        "at": np.array([5, 9]),
        "interface": np.array([1, 2], np.int32),
        "pair": np.array([1 << 32 | FIRST_HOST_IP] * 2),
        "identification": np.array([7, 7], np.uint16),
        "fragment": np.array([0, 0], np.uint16),
        "bytes": np.array([60, 60], np.int32),
    }
    steps = ("message", "time", "link")
    facts = Facts(
        run=0,
        tables=tmp_path,
        processes=2,
        end=100,
        links={(0, 1): (1, 1000)},
        buckets=dict.fromkeys(steps, 1),
        places={1: (None, 0), 2: (0, 1)},
        start=0,
        packet_table=tmp_path,
        framing="udp",
        prompt=True,
    )
    header = pa.table({"source": [1], "seq": [3], "kind": [0], "control": [4]})
    told = {}
    for first, headers in ((True, {"headers": header.cast(NO_HEADERS.schema)}), (False, {})):
        packets = pa.table({**captured, "first": np.array([first, False])})
        pieces = datagram_step(facts, 0, {"packets": packets, **headers})
        told[first] = {piece.role: piece.rows for piece in pieces}
    hops = {first: roles["hops"] for first, roles in told.items()}
    assert hops[True].schema == hops[False].schema
    assert [hops[first]["seq"].to_pylist() for first in (True, False)] == [[3], [None]]
    assert hops[False].select(["queued", "arrived"]).to_pylist() == [{"queued": 5, "arrived": 9}]


def test_a_link_sends_one_packet_after_the_other() -> None:
    random = np.random.default_rng(1)
    queued = np.sort(random.integers(0, 50_000, 500))
    transmission = random.integers(1, 150, 500)
    free = 0
    expected = []
    for at, takes in zip(queued.tolist(), transmission.tolist(), strict=True):
        expected.append(max(at, free))
        free = expected[-1] + takes
    started = starts(queued, transmission)
    assert started.tolist() == expected
    sizes = random.integers(1, 1500, 500)
    waiting = [(queued <= t) & (started > t) for t in queued]
    packets, size = max(w.sum() for w in waiting), max(sizes[w].sum() for w in waiting)
    assert longest_queue(queued, started, sizes) == (packets, size)
    assert packets > 1


@pytest.mark.parametrize(
    ("damage", "bad"),
    [(b"", 0), (b"nonsense\n", 1), (b'{"t":1,"node":9,"event":"send"}\n\n', 1), (b'{"t":1,"no', 1)],
)
def test_lines_that_cannot_be_used_are_counted_and_the_others_read(damage: bytes, bad: int) -> None:
    lines = b"""{"t":5,"node":1,"event":"send","source":1,"seq":2,"to":[0,2],"payload":9,"control":8}
{"t":6,"node":2,"event":"hold","source":1,"seq":2,"for":[0,7],"more":{"a":[]}}
{"t":7,"node":2,"event":"hold","source":1,"seq":2,"for":null}
{"t":8,"node":0,"event":"leave","source":"me","to":4}
"""
    events, unusable = parse(lines + damage, processes=3)
    assert unusable == bad
    assert events["at"].to_pylist() == [5, 6, 7, 8]
    assert events["destinations"].to_pylist() == [2, None, None, None]
    assert events["for_seq"].to_pylist() == [None, 7, None, None]
    assert events["source"].to_pylist() == [1, 1, 1, None]


@pytest.mark.parametrize("most", [1, 7, 40, 65, 1000])
def test_every_line_of_small_and_large_logs_is_read_once(tmp_path: Path, most: int) -> None:
    logs = [b"one\ntwo, which is longer\n", b"", b"a\n\nb\ntorn", b"x" * 90 + b"\nafter it\n"]
    files = [tmp_path / f"{number}.jsonl" for number in range(len(logs))]
    for file, log in zip(files, logs, strict=True):
        file.write_bytes(log)
    parts = list(log_parts(0, files, most))
    assert all(part.size <= most for part in parts)
    assert sum(part.size for part in parts) == sum(map(len, logs))
    read = b"".join(lines.read() for part in parts for lines in part.lines)
    assert read == b"".join(log + b"\n" if log.endswith(b"torn") else log for log in logs)
