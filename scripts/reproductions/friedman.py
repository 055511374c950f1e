"""Friedman & Manor 2004, Figs. 3-17: Overlay against Timestamp, system size 100 to 600.

The paper's curves are not given as numbers, so what is compared is what its text says of them: which
protocol is better at which data size, and what grows with the number of nodes. For each statement the
table says yes or no for every system size, as measured.

What the paper leaves open, and what is taken here:
- The edge probability is "0.01 to 0.04" for 100 to 600 nodes; it must fall with n, or small graphs
  fall apart and large ones are dense. Taken: 0.04, 0.03, 0.02, 0.02, 0.015, 0.01.
- How Timestamp's multicast travels: along the source's tree ("network") or as n - 1 copies
  ("unicast"). Both are run.
- How long the senders send. Their bursts saturate 10 Mbit/s links, so delays grow with that length;
  it is printed with the results. And the larger the system, the less a sender sees of the others'
  messages before it has sent all of its own, so that fewer messages depend on one another. What is
  said of delivery queues is therefore also looked at under a load that the links can carry: Poisson
  senders, 40 messages a second each, for a second.
- The 32-byte header is meant to cover the transport's, so packets are framed "bare".
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from testbed.experiment import parse
from testbed.run import run_experiment

EDGE_PROBABILITY = {100: 0.04, 200: 0.03, 300: 0.02, 400: 0.02, 500: 0.015, 600: 0.01}
DATA = (0, 100, 1000)
PROTOCOLS: dict[str, dict[str, str]] = {
    "overlay": {"name": "overlay"},
    "network": {"name": "timestamp", "multicast": "network"},
    "unicast": {"name": "timestamp", "multicast": "unicast"},
}
CARRIED = "carried"  # Timestamp by network multicast under a load that the links can carry
Point = tuple[str, int, int]  # protocol, nodes, data size


@dataclass(frozen=True)
class Results:
    """The mean over seeds of every figure at every point."""

    figures: dict[Point, dict[str, float]]
    sizes: tuple[int, ...]

    def __call__(self, key: str, protocol: str, nodes: int, data: int) -> float:
        """One figure at one point."""
        return self.figures[protocol, nodes, data][key]


def main() -> int:
    """Run every point, then judge every statement."""
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce friedman", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(EDGE_PROBABILITY))
    parser.add_argument("--duration-ms", type=float, default=2.0, help="how long senders send")
    parser.add_argument("--seeds", type=int, default=2, help="topologies to average over")
    parser.add_argument("--framing", choices=("bare", "udp"), default="bare")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    options = parser.parse_args()
    if unknown := sorted(set(options.sizes) - set(EDGE_PROBABILITY)):
        parser.error(f"--sizes {unknown[0]}: choose from {', '.join(map(str, EDGE_PROBABILITY))}")
    results = run_all(options)
    report(results, options)
    file = options.runs / "friedman.json"
    rows = [{"protocol": p, "nodes": n, "data": d, **f} for (p, n, d), f in results.figures.items()]
    file.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"figures: {file}")
    return 0


def run_all(options: argparse.Namespace) -> Results:
    """All points and seeds on all cores; the largest first, so that none is left over at the end."""
    points = [
        (protocol, nodes, data, seed)
        for nodes in sorted(options.sizes, reverse=True)
        for protocol in (*PROTOCOLS, CARRIED)
        for data in (DATA if protocol in PROTOCOLS else (0,))
        for seed in range(1, options.seeds + 1)
    ]
    found: dict[Point, list[dict[str, float]]] = {}
    with ProcessPoolExecutor() as pool:
        tasks = {pool.submit(run_point, *point, options): point[:3] for point in points}
        done = as_completed(tasks)
        for task in track(done, "friedman", len(tasks), console=Console(stderr=True)):
            found.setdefault(tasks[task], []).append(task.result())
    figures = {
        point: {key: mean(run[key] for run in runs) for key in runs[0]}
        for point, runs in found.items()
    }
    return Results(figures, tuple(sorted(options.sizes)))


def run_point(
    protocol: str, nodes: int, data: int, seed: int, options: argparse.Namespace
) -> dict[str, float]:
    """One run; anything but causal order ends the reproduction."""
    document: dict[str, Any] = {
        "name": f"friedman-{nodes}-{data}",
        "seed": seed,
        "protocol": PROTOCOLS.get(protocol, PROTOCOLS["network"]),
        "topology": {
            "model": "pure-random",
            "nodes": nodes,
            "edge_probability": EDGE_PROBABILITY[nodes],
        },
        "links": {"delay_ms": [0.0, 1.0], "bandwidth_mbit": 10},
        "transport": {"framing": options.framing},
        "workload": {"model": "poisson", "rate_per_s": 40, "duration_ms": 1000}
        if protocol == CARRIED
        else {"model": "bursts", "duration_ms": options.duration_ms, "payload_bytes": data},
    }
    (experiment,) = parse(document, Path("friedman"))
    run = run_experiment(experiment, options.runs, lambda stage, done, of: None)
    if not run.verdict.ok:
        sys.exit(f"{run.path}: causal order is {run.verdict.verdict}")
    return {k: v for k, v in run.summary.items() if isinstance(v, int | float)}


Judge = Callable[[Results, str, int], bool]


def less(key: str, data: int) -> Judge:
    """Overlay has less of it than Timestamp."""
    return lambda r, timestamp, n: r(key, "overlay", n, data) < r(key, timestamp, n, data)


def more(key: str, data: int) -> Judge:
    """Overlay has more of it than Timestamp."""
    return lambda r, timestamp, n: r(key, "overlay", n, data) > r(key, timestamp, n, data)


def grows(key: str, data: int) -> Judge:
    """Timestamp's has grown since the system size before."""

    def judge(r: Results, timestamp: str, n: int) -> bool:
        before = max((size for size in r.sizes if size < n), default=None)
        return before is None or r(key, timestamp, n, data) > r(key, timestamp, before, data)

    return judge


def grows_when_carried(key: str) -> Judge:
    """The same under a load that the links can carry, from the smallest system to this one."""

    def judge(r: Results, timestamp: str, n: int) -> bool:
        return n == r.sizes[0] or r(key, CARRIED, n, 0) > r(key, CARRIED, r.sizes[0], 0)

    return judge


def gap_shrinks(r: Results, timestamp: str, n: int) -> bool:
    """Overlay's advantage in delay at 100 bytes is smaller than at none."""
    small, large = (
        r("delay_ms_mean", "overlay", n, d) / r("delay_ms_mean", timestamp, n, d) for d in (0, 100)
    )
    return large > small


def little_effect(r: Results, timestamp: str, n: int) -> bool:
    """Timestamp's mean queue changes less than twofold while the data grow from 0 to 1000."""
    queues = [r("delivery_queue_mean", timestamp, n, d) for d in DATA]
    return max(queues) < 2 * min(queues)


def always_empty(r: Results, timestamp: str, n: int) -> bool:
    """Overlay holds nothing back."""
    return all(r("delivery_queue_max", "overlay", n, d) == 0 for d in DATA)


STATEMENTS: tuple[tuple[str, str, Judge], ...] = (
    ("3", "data 0: Overlay delivers faster (mean delay)", less("delay_ms_mean", 0)),
    ("3", "data 0: Overlay delivers faster (max delay)", less("delay_ms_max", 0)),
    ("4", "data 100: the difference decreases", gap_shrinks),
    ("5", "data 1000: Timestamp delivers faster (mean delay)", more("delay_ms_mean", 1000)),
    ("5", "data 1000: Timestamp delivers faster (max delay)", more("delay_ms_max", 1000)),
    ("6", "data 0: Overlay sends more messages", more("messages", 0)),
    ("6", "data 0: Overlay sends fewer bytes", less("bytes", 0)),
    ("7", "data 100: Overlay sends fewer bytes", less("bytes", 100)),
    ("8", "data 1000: Overlay sends more bytes", more("bytes", 1000)),
    ("9", "data 0: Overlay takes more hops", more("hops", 0)),
    ("11", "data 1000: Overlay takes more hops", more("hops", 1000)),
    (
        "12",
        "data 0: Timestamp's delivery queue grows with n (mean)",
        grows("delivery_queue_mean", 0),
    ),
    ("12", "data 0: Timestamp's delivery queue grows with n (max)", grows("delivery_queue_max", 0)),
    ("12", "the same where links carry the load (mean)", grows_when_carried("delivery_queue_mean")),
    ("12", "the same where links carry the load (max)", grows_when_carried("delivery_queue_max")),
    ("12-14", "Overlay's delivery queue is always empty", always_empty),
    ("12-14", "data size has little effect on Timestamp's queue", little_effect),
    ("15", "data 0: Timestamp loads the network more (mean)", less("network_load_mean", 0)),
    ("17", "data 1000: Overlay loads the network more (mean)", more("network_load_mean", 1000)),
    ("17", "data 1000: Overlay's longest link queue is longer", more("link_queue_max", 1000)),
)


def report(results: Results, options: argparse.Namespace) -> None:
    """The statements with yes or no, then the figures they rest on."""
    out = Console(highlight=False, width=130)
    out.print(
        f"10 senders, bursts of 10 messages each millisecond for {options.duration_ms:g} ms, "
        f"{options.seeds} topologies each, packets framed {options.framing}"
    )
    for timestamp in ("network", "unicast"):
        table = Table(title=f"Timestamp by {timestamp} multicast", title_justify="left", box=None)
        table.add_column("Fig.")
        table.add_column("the paper says")
        for n in results.sizes:
            table.add_column(str(n), justify="right")
        for figure, words, judge in STATEMENTS:
            verdicts = [judge(results, timestamp, n) for n in results.sizes]
            marks = ["yes" if v else "[bold]no[/]" for v in verdicts]
            table.add_row(figure, words, *marks)
        out.print(table)
    figures = Table(title="Figures", title_justify="left", box=None)
    keys = (
        ("delay_ms_mean", "delay mean", "{:,.1f}"),
        ("delay_ms_max", "delay max", "{:,.1f}"),
        ("messages", "messages", "{:,.0f}"),
        ("bytes", "bytes", "{:,.0f}"),
        ("hops", "hops", "{:,.0f}"),
        ("delivery_queue_mean", "queue mean", "{:,.4f}"),
        ("delivery_queue_max", "queue max", "{:,.0f}"),
        ("network_load_mean", "load mean", "{:,.0f}"),
        ("link_queue_max", "link queue", "{:,.0f}"),
    )
    for column in ("n", "data", "protocol", *(label for _, label, _ in keys)):
        figures.add_column(column, justify="left" if column == "protocol" else "right")
    for n in results.sizes:
        for data in DATA:
            for protocol in PROTOCOLS:
                values = (form.format(results(key, protocol, n, data)) for key, _, form in keys)
                figures.add_row(str(n), str(data), protocol, *values)
        values = (form.format(results(key, CARRIED, n, 0)) for key, _, form in keys)
        figures.add_row(str(n), "0", CARRIED, *values)
    out.print(figures)


if __name__ == "__main__":
    sys.exit(main())
