"""What a student should find: routes and times from the network, packets from the simulator.

The simulator and the emulation agree to some nanoseconds, which is one of the things to be seen here.
"""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow.parquet as pq

from testbed.experiment import load
from testbed.experiment.network import build_network
from testbed.run import run_experiment
from testbed.topologies.routing import children, path, shortest_path_tree

FROM, TO = 0, 5
MESSAGE = (3, 2)
PING_BITS = 98 * 8


def expected(lab: Path) -> dict[str, Any]:
    """The right answers, by the names that answers.toml has for them."""
    graph = build_network(load(lab / "network.toml")[0]).graph
    way, back = route(graph, FROM, TO), route(graph, TO, FROM)
    broken = graph.copy()
    broken.remove_edge(*way[:2])
    detour, detour_back = route(broken, FROM, TO), route(broken, TO, FROM)
    hops = [*packets(lab / "network.toml")]
    waits = [((row["started"] - row["queued"]) / 1e6, row) for row in hops[0]]
    longest, row = max(waits, key=lambda wait: wait[0])
    return {
        "route": " ".join(map(str, way)),
        "rtt_ms": time_of(graph, way) + time_of(graph, back),
        "first_link_delay_ms": graph.edges[way[0], way[1]]["delay_ns"] / 1e6,
        "tree_copies": len(children(shortest_path_tree(graph, FROM))[FROM]),
        "detour": " ".join(map(str, detour)),
        "detour_rtt_ms": time_of(broken, detour) + time_of(broken, detour_back),
        "overlay_hops": len(hops[0]),
        "timestamp_hops": len(hops[1]),
        "longest_wait_ms": longest,
        "waited_at": f"s{row['tail']}->s{row['head']}",
    }


def route(graph: "nx.Graph[int]", start: int, end: int) -> list[int]:
    """The way of a packet."""
    return path(shortest_path_tree(graph, end), start)


def time_of(graph: "nx.Graph[int]", way: list[int]) -> float:
    """How long a ping takes on its way, in milliseconds."""
    links = [graph.edges[link] for link in pairwise(way)]
    times = (link["delay_ns"] / 1e6 + 1e3 * PING_BITS / link["bandwidth_bps"] for link in links)
    return float(sum(times))


def packets(file: Path) -> Any:
    """For each protocol, the rows of the packets that carried the message over a link."""
    for experiment in load(file, engine="simulate", packets="full"):
        with tempfile.TemporaryDirectory() as runs:
            run = run_experiment(experiment, Path(runs), lambda *_: None)
            rows = pq.read_table(run.path / "packets" / "links.parquet").to_pylist()
        yield [row for row in rows if (row["source"], row["seq"]) == MESSAGE]
