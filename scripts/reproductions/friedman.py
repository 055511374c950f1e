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
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from rich.console import Console
from rich.table import Table

from testbed.commands.terminal import progress_bar
from testbed.errors import UserError
from testbed.experiment import read_document
from testbed.report.trends import TRENDS
from testbed.sweep.points import Sweep, expand
from testbed.sweep.runner import Swept, run_sweep

if TYPE_CHECKING:
    import pandas as pd

FILE = Path(__file__).parents[1] / "experiments" / "friedman.toml"
DATA = (0, 100, 1000)
PROTOCOLS = {"overlay": "overlay", "timestamp, network": "network", "timestamp, unicast": "unicast"}
CARRIED = "carried"  # Timestamp by network multicast under a load that the links can carry
FIRST_FIGURE = 3
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
    """Sweep, judge every statement, and say where the figures are."""
    document = read_document(FILE)
    sizes = [topology["nodes"] for topology in document["topology"]]
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce friedman", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, choices=sizes, metavar="N")
    parser.add_argument("--duration-ms", type=float, default=2.0, help="how long senders send")
    parser.add_argument("--seeds", type=int, default=2, help="topologies to average over")
    parser.add_argument("--framing", choices=("bare", "udp"), default="bare")
    parser.add_argument("--master", default="local[*]", help="where Spark runs")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    options = parser.parse_args()
    try:
        swept = sweep(_chosen(document, options), options)
        carried = sweep(_carried(_chosen(document, options)), options)
    except UserError as error:
        sys.exit(f"reproduce: {error}")
    report(_results(swept.trends, carried.trends, tuple(sorted(set(options.sizes)))), options)
    show_files(swept, carried)
    return 0


def sweep(document: dict[str, Any], options: argparse.Namespace) -> Swept:
    """All points of a document; anything but causal order ends the reproduction."""
    points = Sweep.of(expand(document, FILE))
    text = tomli_w.dumps(document)
    notes = Console(stderr=True, highlight=False, soft_wrap=True)
    with progress_bar(document["name"]) as progress:
        swept = run_sweep(points, text, options.runs, options.master, notes.print, progress)
    for error in swept.failed.values():
        raise UserError(f"{swept.directory}: {len(swept.failed)} runs failed, the first: {error}")
    wrong = swept.points[swept.points["verdict"] != "valid"]
    for run, verdict in zip(wrong["run"], wrong["verdict"], strict=True):
        raise UserError(f"{swept.directory / run}: causal order is {verdict}")
    return swept


def _chosen(document: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    return {
        **document,
        "seed": list(range(1, options.seeds + 1)),
        "topology": [t for t in document["topology"] if t["nodes"] in options.sizes],
        "transport": {"framing": options.framing},
        "workload": {**document["workload"], "duration_ms": options.duration_ms},
    }


def _carried(document: dict[str, Any]) -> dict[str, Any]:
    return {
        **document,
        "name": "friedman-carried",
        "protocol": {"name": "timestamp", "multicast": "network"},
        "workload": {"model": "poisson", "rate_per_s": 40, "duration_ms": 1000},
    }


def _results(trends: pd.DataFrame, carried: pd.DataFrame, sizes: tuple[int, ...]) -> Results:
    figures: dict[Point, dict[str, float]] = {}
    for row in trends.to_dict("records"):
        nodes = row.get("topology.nodes", sizes[0])
        point = (PROTOCOLS[row["protocol"]], nodes, row["workload.payload_bytes"])
        figures.setdefault(point, {})[row["figure"]] = row["mean"]
    for row in carried.to_dict("records"):
        point = (CARRIED, row.get("topology.nodes", sizes[0]), 0)
        figures.setdefault(point, {})[row["figure"]] = row["mean"]
    return Results(figures, sizes)


def show_files(swept: Swept, carried: Swept) -> None:
    """Which file is which figure of the paper; one for each measure and data size."""
    numbers = [f"{trend.name}-payload-bytes-{d}" for trend in TRENDS for d in DATA]
    names = {name: number for number, name in enumerate(numbers, FIRST_FIGURE)}
    print(f"figures: {swept.directory / 'figures'}")
    for file in swept.figures:
        if file.stem in names:
            print(f"  Fig. {names[file.stem]}: {file.name}")
    print(f"report: {swept.directory / 'report.html'}")
    print(f"results: {swept.directory} and {carried.directory}")


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
            for protocol in PROTOCOLS.values():
                values = (form.format(results(key, protocol, n, data)) for key, _, form in keys)
                figures.add_row(str(n), str(data), protocol, *values)
        values = (form.format(results(key, CARRIED, n, 0)) for key, _, form in keys)
        figures.add_row(str(n), "0", CARRIED, *values)
    out.print(figures)


if __name__ == "__main__":
    sys.exit(main())
