"""Digested runs made by hand, small enough to know all that a report should say of them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import tomli_w

from testbed.digest.causes import with_causes
from testbed.runs.parts import COLUMNS

MS = 1_000_000


class Event(NamedTuple):
    """A line of a log; ``reason`` is the message for which one is held."""

    node: int
    at: int
    event: str
    source: int
    seq: int
    reason: tuple[int, int] | None = None


# Process 1 answers m(0,1) before it has reached process 2, which holds the answer back.
TRIANGLE = (
    Event(0, 0, "send", 0, 1),
    Event(0, 0, "deliver", 0, 1),
    Event(1, 2 * MS, "deliver", 0, 1),
    Event(1, 3 * MS, "send", 1, 1),
    Event(1, 3 * MS, "deliver", 1, 1),
    Event(2, 4 * MS, "hold", 1, 1, (0, 1)),
    Event(0, 5 * MS, "deliver", 1, 1),
    Event(2, 9 * MS, "deliver", 0, 1),
    Event(2, 9 * MS, "deliver", 1, 1),
)


def write_run(
    path: Path,
    events: Iterable[Event] = TRIANGLE,
    protocol: str = "timestamp",
    packets: bool = True,
    **manifest: Any,
) -> Path:
    """A run directory with tables that fit its events."""
    events = list(events)
    processes = max(event.node for event in events) + 1
    (path / "tables").mkdir(parents=True)
    _write_logs(path / "events", events)
    _write_json(path / "manifest.json", _manifest(path, protocol) | manifest)
    _write_json(path / "network.json", _network(processes))
    (path / "experiment.toml").write_text(tomli_w.dumps(_experiment(processes, protocol)))
    tables = _tables(events, processes, packets)
    _write_json(path / "summary.json", _summary(tables, processes, protocol))
    for name, table in tables.items():
        frame = table.reindex(columns=COLUMNS[name].split())
        frame.to_parquet(path / "tables" / f"{name}.parquet", index=False)
    return path


def _write_logs(directory: Path, events: list[Event]) -> None:
    directory.mkdir()
    lines = []
    for event in events:
        line = {"t": event.at, "node": event.node, "event": event.event}
        line |= {"source": event.source, "seq": event.seq}
        lines.append(json.dumps(line | ({"to": None} if event.event == "send" else {})))
    (directory / "nodes.jsonl").write_text("\n".join(lines) + "\n")


def _write_json(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content))


def _manifest(path: Path, protocol: str) -> dict[str, Any]:
    return {
        "schema": 1,
        "testbed": "0.1.0",
        "status": "complete",
        "experiment": "small",
        "run": path.name,
        "engine": "simulate",
        "protocol": protocol,
        "seed": 1,
        "started": "2026-01-02T03:04:05.678+00:00",
        "versions": {"python": "3.11.2"},
        "verdict": "valid",
    }


def _network(processes: int) -> dict[str, Any]:
    link = {"delay_ns": MS, "bandwidth_bps": 10_000_000}
    nodes = [{"id": n, "name": str(n), "x": 10.0 * n, "y": n * n % 7} for n in range(processes)]
    ring = sorted({tuple(sorted((n, (n + 1) % processes))) for n in range(processes)})
    links = [{"a": a, "b": b, **link} for a, b in ring]
    return {"nodes": nodes, "links": links, "overlay": None, "generated": {"model": "cycle"}}


def _experiment(processes: int, protocol: str) -> dict[str, Any]:
    return {
        "name": "small",
        "protocol": {"name": protocol},
        "topology": {"model": "pure-random", "nodes": processes, "edge_probability": 0.5},
        "workload": {"model": "bursts", "senders": 1},
    }


def _tables(events: list[Event], processes: int, packets: bool) -> dict[str, pd.DataFrame]:
    log = pd.DataFrame(events).sort_values(["node", "at"], kind="stable", ignore_index=True)
    log["number"] = log.groupby("node").cumcount()
    log["for_source"] = [reason[0] if reason else None for reason in log["reason"]]
    log["for_seq"] = [reason[1] if reason else None for reason in log["reason"]]
    name = ["source", "seq"]
    sends = log[log["event"] == "send"].set_index(name)["at"].rename("sent_at")
    holds = log[log["event"] == "hold"].groupby([*name, "node"])["at"].min().rename("held_at")
    deliveries = log[log["event"] == "deliver"].join(sends, on=name).join(holds, on=[*name, "node"])
    deliveries["delay"] = deliveries["at"] - deliveries["sent_at"]
    deliveries["held"] = deliveries["at"] - deliveries["held_at"]
    its = pa.Table.from_pandas(deliveries[["node", *name, "at", "held_at"]], preserve_index=False)
    for cause in ("cause_source", "cause_seq"):
        deliveries[cause] = with_causes(its)[cause].to_pandas().to_numpy()
    others = deliveries[deliveries["node"] != deliveries["source"]]
    delays = {"delay_mean": ("delay", "mean"), "delay_max": ("delay", "max")}
    holds_of = {"holders": ("held", "count"), "held_max": ("held", "max")}
    messages = sends.to_frame().join(others.groupby(name).agg(**delays, **holds_of))
    messages["delivered"] = deliveries.groupby(name).size()
    nodes = pd.DataFrame(index=pd.RangeIndex(processes, name="node"))
    nodes["multicasts"] = log[log["event"] == "send"].groupby("node").size()
    nodes["deliveries"] = deliveries.groupby("node").size()
    nodes["held"] = deliveries.groupby("node")["held"].count()
    nodes = nodes.join(others.groupby("node").agg(**delays))
    nodes = nodes.fillna({"multicasts": 0, "deliveries": 0, "held": 0})
    nodes = nodes.assign(queue_mean=nodes["held"] / 2, queue_max=nodes["held"])
    return {
        "events": log,
        "messages": messages.reset_index().fillna({"holders": 0, "delivered": 0}),
        "deliveries": deliveries,
        "delays": _delays(deliveries),
        "carried": pd.DataFrame(columns=COLUMNS["carried"].split()),
        "nodes": nodes.reset_index(),
        **_network_tables(processes, int(log["at"].max()), packets, others),
    }


def _delays(deliveries: pd.DataFrame) -> pd.DataFrame:
    """All of a delay that is not waiting is propagation, over one link from the source."""
    held = deliveries["held"].fillna(0)
    others = (deliveries["node"] != deliveries["source"]).astype(int)
    delays = deliveries[["node", "source", "seq", "delay"]].dropna()
    parts: dict[str, Any] = dict.fromkeys(COLUMNS["delays"].split()[4:], 0)
    on_link = {"held": held, "propagation": delays["delay"] - held, "hops": others}
    return delays.assign(**{**parts, **on_link, "via": deliveries["source"], "copy": 1})


def _hops(links: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """A hop for each delivery at a neighbour of the source, which sends each a copy of its own."""
    ends = links[["tail", "head"]].rename(columns={"tail": "source", "head": "node"})
    hops = others.merge(ends, on=["source", "node"])
    sent, came = hops["at"] - hops["delay"], hops["held_at"].fillna(hops["at"])
    return pd.DataFrame(
        {
            **dict.fromkeys(("tail", "sender", "source"), hops["source"]),
            **dict.fromkeys(("head", "receiver"), hops["node"]),
            **{"queued": sent, "started": sent, "arrived": came, "seq": hops["seq"]},
            **{"error": 0, "bytes": 100, "copy": 1, "kind": 1, "fragment": 0},
        }
    )


def _network_tables(
    processes: int, end: int, packets: bool, others: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    ends = [(link["a"], link["b"]) for link in _network(processes)["links"]]
    links = pd.DataFrame([*ends, *(pair[::-1] for pair in ends)], columns=["tail", "head"])
    links = links.assign(delay_ns=MS, bandwidth_bps=10_000_000)
    timeline = pd.DataFrame({"at": [i * end // 500 for i in range(500)], "width": end // 500})
    timeline = timeline.assign(held_mean=0.5, held_max=1, multicasts=0, deliveries=0)
    if not packets:
        return {"links": links, "timeline": timeline, "hops": links.head(0), "sent": links.head(0)}
    busy = {"packets": 3, "bytes": 300, "busy": 5, "waited": 0, "queue_max": 1}
    return {
        "links": links.assign(load=links.index * 0.1, **busy),
        "timeline": timeline.assign(packets_mean=1.5, packets_max=2),
        "hops": _hops(links, others),
        "sent": links.head(0),
    }


def _summary(tables: dict[str, pd.DataFrame], processes: int, protocol: str) -> dict[str, Any]:
    messages = tables["messages"]
    return {
        "protocol": protocol,
        "nodes": processes,
        "multicasts": len(messages),
        "deliveries": len(tables["deliveries"]),
        "delay_ms_mean": float(messages["delay_mean"].mean()) / MS,
        "delay_ms_max": float(messages["delay_max"].max()) / MS,
        "delivery_queue_mean": 0.25,
        "delivery_queue_max": 1,
        "network_load_mean": 1.5,
        "link_queue_max": 1,
        "copies": 4,
        "messages": 4,
        "bytes": 4 * (32 + 12 + 8),
        "control_bytes": 4 * 12,
        "hops": 5,
        "verdict": "valid",
        "disagreements": 0,
    }
