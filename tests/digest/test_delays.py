"""Every delay explained: against plain loops over the same packets, and message by message by hand."""

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from testbed.digest.carried import carrying
from testbed.digest.carriers import simulated
from testbed.digest.causes import with_causes
from testbed.digest.delays import HOPS, explain, ids
from testbed.experiment import load
from testbed.run import Run
from testbed.runs.directory import RunDirectory
from tests.emulation.conftest import CHECKOUT
from tests.experiments import events_of, parsed, run

FILES = CHECKOUT / "scripts" / "experiments"
DEFAULT = FILES / "overlay-vs-timestamp.toml"
MS = 1_000_000
NETWORK = ("propagation", "serialisation", "queueing", "deviation", "retransmission", "relaying")
PARTS = (*NETWORK, "reception", "waiting", "held", "unattributed")
BASE: dict[str, Any] = {
    "name": "small",
    "packets": "full",
    "topology": {"model": "pure-random", "nodes": 8, "edge_probability": 0.4},
    "links": {"delay_ms": [0.0, 30.0], "bandwidth_mbit": 5},
    "workload": {"model": "poisson", "senders": 4, "rate_per_s": 400, "duration_ms": 30},
}
LARGE = {**BASE["workload"], "payload_bytes": 4000}
HARM = [
    {"kind": "loss", "rate": 0.1},
    {"kind": "duplication", "rate": 0.1},
    {"kind": "reordering", "rate": 0.1},
]
VARIANTS: dict[str, dict[str, Any]] = {
    "flood": {"protocol": {"name": "overlay"}},
    "flood of fragments": {"protocol": {"name": "overlay"}, "workload": LARGE},
    "tree": {"protocol": {"name": "timestamp"}},
    "unicast": {"protocol": {"name": "timestamp", "multicast": "unicast"}, "workload": LARGE},
    "lossy flood": {"protocol": {"name": "overlay"}, "channel": "reliable", "fault": HARM},
    "lossy tree": {"protocol": {"name": "timestamp"}, "channel": "reliable", "fault": HARM},
}


def deliveries_of(done: Run) -> pd.DataFrame:
    """A row for each delivery, in the order of each node's log, by a loop over the lines."""
    sent: dict[tuple[int, int], int] = {}
    held: dict[tuple[int, int, int], int] = {}
    rows = []
    for line in events_of(done):
        if line["event"] == "send":
            sent[line["source"], line["seq"]] = line["t"]
        elif line["event"] == "hold":
            held.setdefault((line["node"], line["source"], line["seq"]), line["t"])
        elif line["event"] == "deliver":
            key = line["node"], line["source"], line["seq"]
            rows.append((*key, line["t"], line["t"] - sent[key[1:]], held.get(key)))
    table = pd.DataFrame(rows, columns=["node", "source", "seq", "at", "delay", "held_at"])
    return table.sort_values("node", kind="stable").astype({"held_at": "Int64"})


def explained(done: Run) -> tuple[pa.Table, pd.DataFrame, pd.DataFrame]:
    """A run's packets, its deliveries, and what these are made up of."""
    directory = RunDirectory(done.path)
    packets = pq.read_table(directory.packet_table)
    several = pa.compute.equal(packets["receiver"], -1)
    receiver = pa.compute.if_else(several, None, packets["receiver"])
    place = packets.column_names.index("receiver")
    packets = packets.set_column(place, "receiver", receiver)
    links = {
        ends: (link["delay_ns"], link["bandwidth_bps"])
        for a, b, link in directory.network.graph.edges(data=True)
        for ends in ((a, b), (b, a))
    }
    delivered = deliveries_of(done)
    table = pa.Table.from_pandas(delivered, preserve_index=False)
    carried = simulated(directory.packet_table)
    packets = packets.drop_columns("carried")
    packets = pa.concat_tables([packets, carrying(packets, carried).cast(packets.schema)])
    prompt = directory.experiment.channel is None
    return packets, delivered, explain(packets, table, links, prompt).to_pandas()


def packets_of(done: Run) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """The packets of each message, those too whose header names another, by a loop over all."""
    rows = pq.read_table(RunDirectory(done.path).packet_table).to_pylist()
    inside: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        if row["carried"]:
            inside[row["sender"], row["receiver"], row["copy"]] = row["carried"]
    found = defaultdict(list)
    for row in rows:
        numbers = inside.get((row["sender"], row["receiver"], row["copy"]), [])
        row["receiver"] = None if row["receiver"] == -1 else row["receiver"]
        for name in {(row["source"], row["seq"]), *zip(numbers[::2], numbers[1::2], strict=True)}:
            found[name].append(row)
    return found


class Way:
    """How one message got to each process, by looking at its hops one by one."""

    def __init__(
        self, source: int, sent: int, hops: list[dict[str, Any]], came: dict[int, int]
    ) -> None:
        self.source, self.sent, self.hops, self.came = source, sent, hops, came
        self.arrival = cache(self._arrival)

    def _arrival(self, process: int) -> dict[str, Any] | None:
        """The last hop of the copy that was complete when the protocol had the message, or first."""
        copies = defaultdict(list)
        for hop in self.hops:
            copies[hop["sender"], hop["receiver"], hop["copy"]].append(hop)
        whole = []
        for (_, receiver, _), hops in copies.items():
            here = [h for h in hops if h["head"] == process and receiver in (process, None)]
            fragments = {hop["fragment"] for hop in hops}
            if {hop["fragment"] for hop in here} == fragments:
                firsts = [
                    min((h for h in here if h["fragment"] == f), key=lambda h: h["arrived"])
                    for f in fragments
                ]
                whole.append(max(firsts, key=lambda hop: hop["arrived"]))
        came = self.came.get(process, -1)
        gaps = [gap for hop in whole if 0 <= (gap := came - hop["arrived"]) <= 1000]
        taken = [hop for hop in whole if came - hop["arrived"] == min(gaps, default=-1)]
        return min(taken or whole, key=lambda hop: (hop["arrived"], hop["queued"]), default=None)

    def before(self, hop: dict[str, Any]) -> dict[str, Any] | None:
        """The hop that led to this one."""
        if hop["tail"] == hop["sender"]:
            return None if hop["sender"] == self.source else self.arrival(hop["sender"])
        name = ("sender", "receiver", "copy", "fragment")
        came = [
            other
            for other in self.hops
            if all(other[k] == hop[k] for k in name)
            and other["head"] == hop["tail"]
            and other["arrived"] <= hop["queued"]
        ]
        return max(came, key=lambda other: other["arrived"])

    def first_try(self, hop: dict[str, Any]) -> int:
        """When this sender first sent this to this receiver."""
        return min(
            int(other["queued"])
            for other in self.hops
            if other["tail"] == other["sender"] == hop["sender"]
            and other["fragment"] == hop["fragment"]
            and other["receiver"] in (None, hop["receiver"])
        )

    def parts(self, process: int, links: Any) -> dict[str, int]:
        """What the time until the message's arrival consists of."""
        total: dict[str, int] = dict.fromkeys((*NETWORK, "hops", "relays"), 0)
        hop = self.arrival(process)
        while hop is not None:
            before = self.before(hop)
            since = self.sent if before is None else before["arrived"]
            link = links[hop["tail"], hop["head"]]
            transmission = hop["bytes"] * 8 * 1000 * MS // link["bandwidth_bps"]
            total["propagation"] += link["delay_ns"]
            total["serialisation"] += transmission
            total["queueing"] += hop["started"] - hop["queued"]
            total["deviation"] += hop["arrived"] - hop["started"] - transmission - link["delay_ns"]
            total["hops"] += 1
            if hop["tail"] == hop["sender"]:
                tried = max(since, self.first_try(hop))
                total["relaying"] += tried - since
                total["retransmission"] += hop["queued"] - tried
                total["relays"] += before is not None
            else:
                total["deviation"] += hop["queued"] - since
            hop = before
        return total


def as_loops_find(done: Run) -> pd.DataFrame:
    """What the deliveries of a run are made up of, which is all known, and no loop finds otherwise."""
    _, delivered, found = explained(done)
    graph = RunDirectory(done.path).network.graph
    links = {ends: graph.edges[ends] for a, b in graph.edges for ends in ((a, b), (b, a))}
    hops = packets_of(done)
    assert (found[[*PARTS]].sum(axis=1) == found["delay"]).all()
    assert (found["unattributed"] == 0).all()
    came: defaultdict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    rows = delivered.astype(object).to_dict("records")
    for row in rows:
        since = row["at"] if pd.isna(row["held_at"]) else row["held_at"]
        came[row["source"], row["seq"]].setdefault(row["node"], since)
    ways: dict[tuple[int, int], Way] = {}
    for row, its in zip(rows, found.to_dict("records"), strict=True):
        name = row["source"], row["seq"]
        if row["node"] == row["source"]:
            continue
        if name not in ways:
            ways[name] = Way(name[0], row["at"] - row["delay"], hops[name], came[name])
        way = ways[name]
        expected = way.parts(row["node"], links)
        assert {key: its[key] for key in expected} == expected, row
        arrival = way.arrival(row["node"])
        assert arrival is not None
        assert (its["via"], its["copy"]) == (arrival["sender"], arrival["copy"])
        assert its["reception"] + its["waiting"] == came[name][row["node"]] - arrival["arrived"]
    return found[found["node"] != found["source"]]


@pytest.mark.parametrize("name", VARIANTS)
def test_parts_are_what_plain_loops_find_and_add_up(name: str, tmp_path: Path) -> None:
    found = as_loops_find(run(parsed(BASE, **VARIANTS[name]), tmp_path))
    assert len(found) > 50
    lossy = name.startswith("lossy")
    assert (found["retransmission"].max() > 0) == (found["deviation"].max() > 0) == lossy
    assert (found["relays"].max() > 0) == ("flood" in name)
    assert (found["reception"].max() > 0) == lossy
    assert (found["waiting"] == 0).all()
    assert found["queueing"].max() > 0


@pytest.mark.parametrize(
    ("file", "protocol", "index"),
    [
        *(("daisy", name, 0) for name in ("", "wait-stable", "broadcast-all", "piggyback")),
        *(("cluster", "", index) for index in (0, 1)),
        *(("groups", "", index) for index in range(3)),
    ],
)
def test_every_delay_is_explained_where_datagrams_carry_several_messages(
    file: str, protocol: str, index: int, tmp_path: Path
) -> None:
    """Packed, passed on, attached or gossiped; waiting for a round, for a view or until it is safe."""
    table = {"name": protocol} if protocol else None
    what = load(FILES / f"{file}.toml", engine="simulate", packets="full", protocol=table)[index]
    found = as_loops_find(run(what, tmp_path))
    assert len(found) > 500
    assert (found["reception"] == 0).all()
    if file == "groups" or protocol == "wait-stable":
        assert (found["relays"] == 0).all()
    elif file == "daisy":
        assert found["relays"].max() > 0
    else:
        assert (found["relaying"] > 0).mean() > 0.9  # until the next round
        assert (found["waiting"] == 0).all()


@pytest.mark.parametrize("index", [0, 1], ids=["overlay", "timestamp"])
def test_every_delay_of_the_default_experiment_adds_up(index: int, tmp_path: Path) -> None:
    experiment = load(DEFAULT, engine="simulate", packets="full")[index]
    _, _, found = explained(run(experiment, tmp_path))
    assert len(found) == 3200
    assert (found[[*PARTS]].sum(axis=1) == found["delay"]).all()
    for unexpected in {*PARTS} - {"propagation", "serialisation", "queueing", "held"}:
        assert (found[unexpected] == 0).all(), unexpected
    assert found["held"].max() > 0 or index == 0


def test_where_no_packets_are_known_only_the_wait_is_explained() -> None:
    packets = pa.table({name: pa.array([], pa.int64()) for name in HOPS})
    rows = {"node": [0, 1], "source": [0, 0], "seq": [1, 1], "at": [5, 90], "delay": [0, 85]}
    table = pa.table({**rows, "held_at": pa.array([None, 70], pa.int64())})
    found = explain(packets, table, {}).to_pandas().set_index("node")
    assert found.loc[1, ["unattributed", "held", "hops"]].tolist() == [65, 20, 0]
    assert found.loc[0, [*PARTS]].sum() == 0


@pytest.mark.parametrize(
    ("came", "copy", "reception", "waiting"),
    [
        (300_000, 2, 0, 0),
        (300_002, 2, 2, 0),  # a host takes some nanoseconds to read its clock
        (302_000, 1, 0, 152_000),  # a protocol that waits has waited since the first copy
        (150_000, 1, 0, 0),
    ],
)
def test_of_two_copies_the_one_counts_that_came_when_the_protocol_had_the_message(
    came: int, copy: int, reception: int, waiting: int
) -> None:
    hops = {
        **{key: [0, 0] for key in ("tail", "sender", "source")},
        **{key: [1, 1] for key in ("head", "receiver")},
        **{"queued": [0, 150_000], "started": [0, 150_000], "arrived": [150_000, 300_000]},
        **{"bytes": [1000, 1000], "copy": [1, 2], "fragment": [0, 0], "seq": [1, 1]},
    }
    delivery = {"node": [1], "source": [0], "seq": [1], "at": [came], "delay": [came]}
    table = pa.table({**delivery, "held_at": pa.array([None], pa.int64())})
    links = {(0, 1): (70_000, 100_000_000)}
    found = explain(pa.table(hops), table, links).to_pandas().iloc[0]
    assert (found["copy"], found["reception"], found["waiting"]) == (copy, reception, waiting)
    assert found[[*PARTS]].sum() == came
    assert found["retransmission"] == (150_000 if copy == 2 else 0)
    slow = explain(pa.table(hops), table, links, prompt=False).to_pandas().iloc[0]
    assert (slow["reception"], slow["waiting"]) == (reception + waiting, 0)


def test_many_wide_keys_are_numbered_like_few_narrow_ones() -> None:
    one, other = np.array([5, 1, 5, 1]), np.array([7, 7, 7, 8])
    wide = (one << 40, other << 40)
    assert ids(one, other).tolist() == ids(*wide).tolist() == [2, 0, 2, 1]


def pasts(lines: list[dict[str, Any]]) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """The causal past of each message, reckoned step by step."""
    known: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    found: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for line in lines:
        name = (line["source"], line["seq"]) if "source" in line else None
        if line["event"] == "send" and name:
            found[name] = set(known[line["node"]])
            known[line["node"]].add(name)
        elif line["event"] == "deliver" and name:
            known[line["node"]] |= found[name] | {name}
    return found


@pytest.mark.parametrize("protocol", ["timestamp", "rst", "ks", "bss"])
def test_the_cause_is_the_last_of_the_missing_causal_past_to_arrive(
    protocol: str, tmp_path: Path
) -> None:
    busy = {**BASE["workload"], "senders": 8, "duration_ms": 80}
    document = {**BASE, "packets": "counters", "protocol": {"name": protocol}, "workload": busy}
    if protocol == "bss":
        document["groups"] = {"model": "everybody"}
    done = run(parsed(document), tmp_path)
    past = pasts(events_of(done))
    delivered = deliveries_of(done)
    table = with_causes(pa.Table.from_pandas(delivered, preserve_index=False)).to_pandas()
    came = delivered["held_at"].fillna(delivered["at"])
    arrival = dict(
        zip(zip(table["node"], table["source"], table["seq"], strict=True), came, strict=True)
    )
    held = table[table["held_at"].notna()]
    assert len(held) > 20
    for row in held.itertuples():
        missing = {
            name: arrival[row.node, *name]
            for name in past[row.source, row.seq]
            if name[0] != row.node and arrival[row.node, *name] > row.held_at
        }
        cause = (int(row.cause_source), int(row.cause_seq))
        assert missing[cause] == max(missing.values()) == row.at
    assert table[table["held_at"].isna()]["cause_source"].isna().all()
    # The log names what was missing first, which is not always the cause.
    waits = {
        (line["node"], line["source"], line["seq"]): line["for"]
        for line in events_of(done)
        if line["event"] == "hold"
    }
    assert any(
        waits[row.node, row.source, row.seq] != [row.cause_source, row.cause_seq]
        for row in held.itertuples()
    )
