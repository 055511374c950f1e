"""Friedman & Manor 2004, Figs. 3-17: Overlay against Timestamp, system size 100 to 600.

The paper does not give its curves as numbers, so what is compared is what its text says of them: which
protocol is better at which data size, and what grows with the number of nodes. The tables say for
each statement and every system size whether it holds as measured.

What the paper leaves open, and what is assumed here:
- The edge probability is "0.01 to 0.04" for 100 to 600 nodes; it must fall with n, or small graphs
  fall apart and large ones are dense. Here: 0.04, 0.03, 0.02, 0.02, 0.015, 0.01.
- How Timestamp's multicast travels: along the source's tree ("network") or as n - 1 copies
  ("unicast"). Both are run.
- How long the senders send. Their bursts saturate 10 Mbit/s links, so delays grow with that length;
  it is printed with the results. And the larger the system, the less a sender sees of the others'
  messages before it has sent all of its own, so that fewer messages depend on one another. What is
  said of delivery queues is therefore also measured under a load that the links can carry: Poisson
  senders, 40 messages a second each, for a second.
- The 32-byte header is meant to cover the transport's, so packets are framed "bare".

With ``--engine virtual`` all is measured twice: simulated, and from the packets of an emulated network,
which are framed "udp". The plots have both. What was stopped goes on where it was.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tomli_w
from rich.console import Console

from scripts.reproductions import EXPERIMENTS, curried, main, show_table, verdict
from testbed.commands.sweep import draw
from testbed.commands.terminal import progress_bar
from testbed.errors import UserError
from testbed.experiment import read_document
from testbed.experiment.expand import expand
from testbed.report.trends import TRENDS, draw_trends
from testbed.sweep.points import Sweep
from testbed.sweep.runner import run_sweep

if TYPE_CHECKING:
    import pandas as pd

FILE = EXPERIMENTS / "friedman.toml"
DATA = (0, 100, 1000)
PROTOCOLS = {"overlay": "overlay", "timestamp, network": "network", "timestamp, unicast": "unicast"}
CARRIED = "carried"  # Timestamp by network multicast under a load that the links can carry
FIRST_FIGURE = 3
Figures = dict[tuple[str, int, int], dict[str, float]]  # by protocol, nodes and data size


class Case(NamedTuple):
    """A system size, with Timestamp by network or unicast multicast, in which to judge a statement."""

    figures: Figures  # means over seeds
    timestamp: str
    nodes: int

    def __call__(self, key: str, protocol: str, data: int, nodes: int | None = None) -> float:
        """One figure of a protocol, here or in a system of another size."""
        return self.figures[protocol, nodes or self.nodes, data][key]

    def smaller(self) -> list[int]:
        """The smaller systems that were run."""
        return [nodes for nodes in sizes(self.figures) if nodes < self.nodes]


Judge = Callable[[Case], bool]


def sizes(figures: Figures) -> list[int]:
    """The system sizes that were run."""
    return sorted({nodes for _, nodes, _ in figures})


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    every = [topology["nodes"] for topology in read_document(FILE)["topology"]]
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=every, choices=every, metavar="N")
    add("--duration-ms", type=float, default=2.0, help="how long senders send")
    add("--seeds", type=int, default=2, help="topologies to average over")
    add("--framing", choices=("bare", "udp"), help="default: bare, of an emulated network udp")
    add("--engine", choices=("simulate", "virtual"), default="simulate")


class Measured(NamedTuple):
    """What both sweeps found on one engine."""

    directories: tuple[Path, Path]
    trends: pd.DataFrame
    plots: list[Path]
    figures: Figures


def reproduce(options: Namespace) -> None:
    """Run both sweeps, judge every statement, and say which plot is which figure of the paper."""
    emulated = options.engine == "virtual"
    options.framing = options.framing or ("udp" if emulated else "bare")
    found = measure(options, "simulate")
    if emulated:
        simulated, found = found, measure(options, options.engine)
        show_beside(simulated.figures, found.figures)
        found = found._replace(plots=draw_beside(simulated, found))
    print(
        f"10 senders, bursts of 10 messages each millisecond for {options.duration_ms:g} ms, "
        f"{options.seeds} topologies each, packets framed {options.framing}, {options.engine}"
    )
    show_statements(found.figures)
    show_figures(found.figures)
    show_files(found.directories[0], found.plots)
    print(f"results: {found.directories[0]} and {found.directories[1]}")


def measure(options: Namespace, engine: str) -> Measured:
    """Run both sweeps on an engine."""
    document = {
        **(base := read_document(FILE)),
        "engine": engine,
        "seed": list(range(1, options.seeds + 1)),
        "topology": [t for t in base["topology"] if t["nodes"] in options.sizes],
        "transport": {"framing": options.framing},
        "workload": {**base["workload"], "duration_ms": options.duration_ms},
    }
    carried = {
        "name": "friedman-carried",
        "protocol": {"name": "timestamp", "multicast": "network"},
        "workload": {"model": "poisson", "rate_per_s": 40, "duration_ms": 1000},
    }
    directory, trends, plots = sweep(document, options)
    other_directory, other_trends, _ = sweep(document | carried, options)
    figures = figures_of(trends, other_trends, min(options.sizes))
    return Measured((directory, other_directory), trends, plots, figures)


def draw_beside(simulated: Measured, emulated: Measured) -> list[Path]:
    """Draw the trends of both engines into the same plots."""
    import pandas as pd

    named = [
        found.trends.assign(protocol=found.trends["protocol"] + said)
        for found, said in ((simulated, ", simulated"), (emulated, ", from packets"))
    ]
    drawn = draw_trends(pd.concat(named), emulated.directories[0] / "figures")
    return [plot.file for plot in drawn]


def show_beside(simulated: Figures, emulated: Figures) -> None:
    """Show how far the figures of the packets are from the simulated ones."""
    rows = []
    for point, figures in sorted(emulated.items(), key=lambda item: item[0][1:]):
        protocol, nodes, data = point
        cells = []
        for _, key, _ in SHOWN:
            one, other = simulated[point][key], figures[key]
            cells.append("same" if one == other else f"{(other - one) / (one or 1):+.3%}")
        rows.append([str(nodes), str(data), protocol, *cells])
    heads = ("n", "data", "protocol", *(label for label, _, _ in SHOWN))
    show_table(heads, rows, words=3, title="From packets, against simulated")


def sweep(document: dict[str, Any], options: Namespace) -> tuple[Path, pd.DataFrame, list[Path]]:
    """Run all points of a document and draw its trends; raise ``UserError`` if one is not valid.

    The directory, the means over seeds, and the plots.
    """
    points = Sweep.of(expand(document, FILE))
    text = tomli_w.dumps(document)
    notes = Console(stderr=True, highlight=False, soft_wrap=True)
    with progress_bar(document["name"]) as progress:
        swept = run_sweep(points, text, options.runs, options.master, notes.print, progress)
    for error in swept.failed.values():
        raise UserError(f"{swept.directory}: {len(swept.failed)} runs failed, the first: {error}")
    wrong = swept.points[swept.points["verdict"] != "valid"]
    for run, causal_order in zip(wrong["run"], wrong["verdict"], strict=True):
        raise UserError(f"{swept.directory / run}: causal order is {causal_order}")
    return swept.directory, swept.trends, draw(points, swept, [])


def figures_of(trends: pd.DataFrame, carried: pd.DataFrame, only_size: int) -> Figures:
    """The figures of both sweeps; ``only_size`` is the size if it was not varied."""
    figures: Figures = {}
    for row in trends.to_dict("records"):
        nodes = row.get("topology.nodes", only_size)
        point = (PROTOCOLS[row["protocol"]], nodes, row["workload.payload_bytes"])
        figures.setdefault(point, {})[row["figure"]] = row["mean"]
    for row in carried.to_dict("records"):
        point = (CARRIED, row.get("topology.nodes", only_size), 0)
        figures.setdefault(point, {})[row["figure"]] = row["mean"]
    return figures


@curried
def less(case: Case, key: str, data: int) -> bool:
    """Overlay has less of it than Timestamp."""
    return case(key, "overlay", data) < case(key, case.timestamp, data)


@curried
def more(case: Case, key: str, data: int) -> bool:
    """Overlay has more of it than Timestamp."""
    return case(key, "overlay", data) > case(key, case.timestamp, data)


@curried
def grows(case: Case, key: str, data: int) -> bool:
    """Timestamp's figure has grown since the next smaller system."""
    now = case(key, case.timestamp, data)
    return all(now > case(key, case.timestamp, data, n) for n in case.smaller()[-1:])


@curried
def grows_when_carried(case: Case, key: str) -> bool:
    """Under a load that the links can carry, the figure has grown since the smallest system."""
    now = case(key, CARRIED, 0)
    return all(now > case(key, CARRIED, 0, n) for n in case.smaller()[:1])


def gap_shrinks(case: Case) -> bool:
    """Overlay's advantage in delay at 100 bytes is smaller than without data."""
    none, some = (
        case("delay_ms_mean", "overlay", d) / case("delay_ms_mean", case.timestamp, d)
        for d in (0, 100)
    )
    return some > none


def little_effect(case: Case) -> bool:
    """Timestamp's mean queue changes less than twofold while the data grow from 0 to 1000."""
    queues = [case("delivery_queue_mean", case.timestamp, d) for d in DATA]
    return max(queues) < 2 * min(queues)


def always_empty(case: Case) -> bool:
    """Overlay holds nothing back."""
    return all(case("delivery_queue_max", "overlay", d) == 0 for d in DATA)


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


SHOWN = (
    ("delay mean", "delay_ms_mean", "{:,.1f}"),
    ("delay max", "delay_ms_max", "{:,.1f}"),
    ("messages", "messages", "{:,.0f}"),
    ("bytes", "bytes", "{:,.0f}"),
    ("hops", "hops", "{:,.0f}"),
    ("queue mean", "delivery_queue_mean", "{:,.4f}"),
    ("queue max", "delivery_queue_max", "{:,.0f}"),
    ("load mean", "network_load_mean", "{:,.0f}"),
    ("link queue", "link_queue_max", "{:,.0f}"),
)


def show_statements(figures: Figures) -> None:
    """Show for every statement whether it holds at every system size."""
    for timestamp in ("network", "unicast"):
        cases = [Case(figures, timestamp, nodes) for nodes in sizes(figures)]
        show_table(
            ("Fig.", "the paper says", *(str(case.nodes) for case in cases)),
            [
                [figure, words, *(verdict(judge(case)) for case in cases)]
                for figure, words, judge in STATEMENTS
            ],
            words=2,
            title=f"Timestamp by {timestamp} multicast",
        )


def show_figures(figures: Figures) -> None:
    """Show the figures that the verdicts rest on."""
    rows = []
    for n in sizes(figures):
        points = [(protocol, n, data) for data in DATA for protocol in PROTOCOLS.values()]
        for point in (*points, (CARRIED, n, 0)):
            protocol, _, data = point
            values = (form.format(figures[point][key]) for _, key, form in SHOWN)
            rows.append([str(n), str(data), protocol, *values])
    heads = ("n", "data", "protocol", *(label for label, _, _ in SHOWN))
    show_table(heads, rows, words=3, title="Figures")


def show_files(directory: Path, plots: list[Path]) -> None:
    """Say which plot is which figure of the paper, one for each measure and data size."""
    stems = [f"{trend.name}-payload-bytes-{d}" for trend in TRENDS for d in DATA]
    numbers = {stem: number for number, stem in enumerate(stems, FIRST_FIGURE)}
    print(f"figures: {directory / 'figures'}")
    for file in plots:
        if file.stem in numbers:
            print(f"  Fig. {numbers[file.stem]}: {file.name}")
    print(f"report: {directory / 'report.html'}")


if __name__ == "__main__":
    main("friedman", __doc__, add_options, reproduce)
