"""The ways of messages over the links, packed for the page: what ``ways.js`` explains delays with.

A page holds the hops of so many messages, the slowest first; of every hop it says how many packets were
before it, whether the page has their hops or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.check import check_run
from testbed.digest.carried import carrying
from testbed.runs.results import Results

if TYPE_CHECKING:
    from pandas import DataFrame

HOPS = 250_000  # the most that a page holds
SEVERAL = 0xFFFFFFFF
PARTS = {
    "propagation": "propagation",
    "serialisation": "serialisation",
    "queueing": "queueing",
    "deviation": "deviation",
    "retransmission": "retransmission",
    "relaying": "relaying",
    "reception": "reception",
    "waiting": "waiting",
    "held": "held back",
    "unattributed": "not known",
}
VIOLATIONS = 200  # that are marked
NS = 1_000_000_000

Column = NDArray[Any]


def halves(name: str, times: Column) -> dict[str, Column]:
    """A column of times in two, because JavaScript's numbers hold 53 bits and compress badly."""
    return {
        f"{name}Low": (times & 0xFFFFFFFF).astype(np.uint32),
        f"{name}High": (times >> 32).astype(np.int32),
    }


def ways(run: Results, shown: DataFrame, names: Column, most: int = HOPS) -> dict[str, Column]:
    """The hops of the messages in ``names``, and the parts of their delays at ``shown`` events."""
    number = {(int(source), int(seq)): n for n, (source, seq) in enumerate(names)}
    hops = hops_of(run)
    chosen = _slowest(run, number, hops, most)
    return {**_hops(hops, chosen), **_parts(run, shown, chosen)}


def hops_of(run: Results) -> DataFrame:
    """All hops, with what was before them; those of a datagram for each message that it carries."""
    hops = with_ahead(run.hops, run.links)
    if run.carried.empty:
        return hops
    from pandas import concat
    from pyarrow import Table

    both = (Table.from_pandas(table, preserve_index=False) for table in (hops, run.carried))
    return concat([hops, carrying(*both).to_pandas()], ignore_index=True)


def links(run: Results) -> list[list[int]]:
    """Ends, delay and bandwidth of each direction of each link."""
    columns = ("tail", "head", "delay_ns", "bandwidth_bps")
    return [[int(row[c]) for c in columns] for row in run.links.to_dict("records")]


def violations(run: Results) -> list[dict[str, Any]]:
    """Where order broke: a process, what it delivered too early, and what before that."""
    if run.verdict != "invalid" or not run.event_logs:
        return []
    return [
        {
            "node": found.process,
            "kind": found.kind,
            "cause": [int(n) for n in found.cause],
            "effect": [int(n) for n in found.effect],
            "sentence": str(found),
        }
        for found in check_run(run.path).violations(VIOLATIONS)
    ]


def _slowest(
    run: Results, number: dict[tuple[int, int], int], hops: DataFrame, most: int
) -> DataFrame:
    """As many messages as have so many hops, by the numbers that the page gives them."""
    counts = hops.groupby(["source", "seq"]).size().rename("hops").reset_index()
    slow = run.messages.drop(columns="hops").merge(counts, on=["source", "seq"], how="left")
    slow = slow.sort_values("delay_max", ascending=False, kind="stable")
    named = [number.get(key, -1) for key in zip(slow["source"], slow["seq"], strict=True)]
    slow = slow.assign(message=named)[["source", "seq", "message", "hops"]]
    slow = slow[slow["message"] >= 0]
    return slow[slow["hops"].fillna(0).cumsum() <= most].drop(columns="hops")


def _hops(hops: DataFrame, chosen: DataFrame) -> dict[str, Column]:
    hops = hops.merge(chosen, on=["source", "seq"], how="inner")
    hops = hops.sort_values(["message", "queued", "tail", "head"], kind="stable")
    receiver = hops["receiver"].fillna(SEVERAL)
    plain = {name: hops[name] for name in ("tail", "head", "sender", "fragment", "bytes", "ahead")}
    plain |= {"message": hops["message"], "receiver": receiver, "copy": hops["copy"]}
    times = {name: hops[name].to_numpy(np.int64) for name in ("queued", "started", "arrived")}
    times["wait"] = times.pop("started") - times["queued"]
    times["took"] = times.pop("arrived") - times["queued"]
    columns = {
        f"hop{name.title()}": values.fillna(0).to_numpy(np.int64).astype(np.uint32)
        for name, values in plain.items()
    }
    for name, values in times.items():
        columns |= halves(f"hop{name.title()}", values)
    return columns


def with_ahead(hops: DataFrame, its_links: DataFrame) -> DataFrame:
    """Hops, with the number of packets that a link had to transmit first when each joined its queue."""
    rates = its_links.set_index(["tail", "head"])["bandwidth_bps"].to_dict()
    hops = hops.sort_values(["tail", "head", "queued", "started"], kind="stable")
    ahead = np.zeros(len(hops), np.int64)
    queued, started, size = (hops[n].to_numpy(np.int64) for n in ("queued", "started", "bytes"))
    for ends, places in hops.groupby(["tail", "head"]).indices.items():
        out = np.sort(started[places] + size[places] * 8 * NS // int(rates[ends]))
        gone = np.searchsorted(out, queued[places], "right")
        ahead[places] = np.maximum(0, np.arange(len(places)) - gone)
    return hops.assign(ahead=ahead)


def _parts(run: Results, shown: DataFrame, chosen: DataFrame) -> dict[str, Column]:
    """The parts of the delay of each delivery shown, and the message that it waited for last."""
    where = shown.assign(place=np.arange(len(shown)))[shown["event"] == "deliver"]
    keys = ["node", "source", "seq"]
    where = where[["place", *keys]].drop_duplicates(keys)
    table = where.merge(run.delays, on=keys).merge(chosen, on=["source", "seq"])
    causes = run.deliveries[[*keys, "cause_source", "cause_seq"]].drop_duplicates(keys)
    table = table.merge(causes, on=keys, how="left").sort_values("place")
    columns: dict[str, Column] = {"partEvent": table["place"].to_numpy(np.uint32)}
    for name in PARTS:
        columns |= halves(name, table[name].to_numpy(np.int64))
    plain = {
        "viaSender": table["via"],
        "viaCopy": table["copy"],
        "causeSource": table["cause_source"],
        "causeSeq": table["cause_seq"],
    }
    for name, values in plain.items():
        columns[name] = values.fillna(SEVERAL).to_numpy(np.int64).astype(np.uint32)
    return columns
