"""What the reproduction of Chandra et al. runs and measures.

One run of KS tells what KS, KS' and RST attach, since all three send the same messages at the same
times. What is measured of a run is what a message carries and what a process keeps, as the number of
entries, of destinations in them, and of entries without any: all ways of counting are sums of these.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from scripts.reproductions.running import EXPERIMENTS, Row
from testbed.experiment import Experiment, parse, read_document

FILE = EXPERIMENTS / "chandra.toml"
SLOT_MS = 500.0
TURNS, ROUNDS, EVENTS = CLOCKS = ("turns", "rounds", "events")
COPY, MESSAGE, PROCESS = WEIGHTINGS = ("copy", "message", "process")
ALL = (1, 2, 3, 4)  # the settings of a figure


class Setting(NamedTuple):
    """What is fixed of a curve: the paper's MTT and MIMT in milliseconds, M/T, and n."""

    mtt: float = 50
    mimt: float = 100
    multicast: float = 0.1
    nodes: int = 0

    def words(self, varying: str) -> str:
        """What is fixed while something else varies, in words."""
        values = {"MTT": self.mtt, "MIMT": self.mimt, "M/T": self.multicast, "n": self.nodes}
        instead = {"|Dests|/n": "M/T", "B/T": "M/T"}.get(varying, varying.split()[0])
        return "".join(f", {k} {v:g}" for k, v in values.items() if k != instead)


class Values(NamedTuple):
    """The values on an x axis: all, and a few of them."""

    all: tuple[float, ...]
    few: tuple[float, ...]


class Figure(NamedTuple):
    """One of the paper's figures: the key that varies, and its four settings."""

    key: str
    label: str
    values: tuple[Values, ...]
    settings: tuple[Setting, ...]


SIZES = Values((10, 15, 20, 30, 40, 50, 60, 80, 100), (10, 15, 40, 60, 100))
FAR = Values((20, 50, 100, 400, 1000, 3000, 6000), (50, 400, 3000, 6000))
NEARER = Values((50, 100, 200, 400, 1000), (50, 400, 1000))
SHORT = Values((50, 100, 200, 400, 800, 1200), (50, 200, 1200))
LONG = Values((50, 100, 200, 400, 800, 1200, 4000, 12000), (50, 200, 1200, 12000))
TENTHS = Values(tuple(k / 10 for k in range(1, 11)), (0.1, 0.5, 1.0))
FREQUENCIES = (
    Setting(75, 500, 1, 12),
    Setting(50, 500, 1, 40),
    Setting(50, 400, 1, 20),
    Setting(50, 1600, 1, 15),
)
FIGURES = {
    3: Figure(
        "topology.nodes",
        "n",
        (SIZES,) * 4,
        (Setting(), Setting(mtt=400), Setting(mimt=1600), Setting(mimt=400, multicast=0.99)),
    ),
    4: Figure(
        "topology.mean_ms",
        "MTT (ms)",
        (FAR, FAR, NEARER, NEARER),
        (
            Setting(mimt=1600, nodes=15),
            Setting(mimt=400, nodes=15),
            Setting(mimt=400, nodes=40),
            Setting(mimt=1600, multicast=0.9, nodes=15),
        ),
    ),
    5: Figure(
        "workload.mean_interval_ms",
        "MIMT (ms)",
        (SHORT, SHORT, LONG, LONG),
        (
            Setting(nodes=40),
            Setting(nodes=20),
            Setting(mtt=400, nodes=20),
            Setting(multicast=0.9, nodes=20),
        ),
    ),
    6: Figure("workload.multicast_fraction", "M/T", (TENTHS,) * 4, FREQUENCIES),
    7: Figure("workload.destinations_fraction", "|Dests|/n", (TENTHS,) * 4, FREQUENCIES),
    8: Figure("workload.broadcast_fraction", "B/T", (TENTHS,) * 4, FREQUENCIES),
}
BY_ROUNDS = Values((15, 100), (15,))  # points of Fig. 3 that are also run by the other reading


class Point(NamedTuple):
    """A point of a curve, by one of the clocks."""

    clock: str
    figure: int
    setting: int  # from 1 on
    x: float


def points(
    figures: list[int], by_events: list[int], few: bool, sizes: list[int] | None = None
) -> list[Point]:
    """All points of these figures with turns; those of some by events too, and a few by rounds.

    Fig. 3 has these sizes, if they are given.
    """
    found = []
    for number in sorted(set(figures)):
        clocks = (TURNS, EVENTS, ROUNDS) if number in by_events else (TURNS, ROUNDS)
        for clock in clocks:
            for setting in ALL:
                values = FIGURES[number].values[setting - 1]
                chosen = values.few if few else values.all
                if number == 3 and sizes:
                    chosen = tuple(float(n) for n in sorted(set(sizes)))
                if clock == ROUNDS:
                    both = BY_ROUNDS.few if few else BY_ROUNDS.all
                    chosen = tuple(x for x in chosen if number == 3 and x in both)
                found += [Point(clock, number, setting, x) for x in chosen]
    return found


def experiment(point: Point, seed: int, messages: int) -> Experiment:
    """One run of a point."""
    figure, base = FIGURES[point.figure], read_document(FILE)
    setting = figure.settings[point.setting - 1]
    topology = {**base["topology"], "nodes": setting.nodes, "mean_ms": setting.mtt}
    if point.clock != EVENTS:
        topology |= {"turn_ms": SLOT_MS, "clock": point.clock}
    workload = {
        **base["workload"],
        "messages": messages,
        "warm_up_messages": messages // 6,
        "mean_interval_ms": setting.mimt,
        "multicast_fraction": 0 if point.figure == 8 else setting.multicast,
    }
    table, key = figure.key.split(".")
    x = int(point.x) if key == "nodes" else point.x
    {"topology": topology, "workload": workload}[table][key] = x
    document = {**base, "seed": seed, "topology": topology, "workload": workload}
    return parse(document, FILE)[0]


def work(experiment: Experiment) -> float:
    """About how many seconds a run takes: a copy takes longer the more processes there are."""
    topology: Any = experiment.topology
    workload: Any = experiment.workload
    nodes: int = topology.nodes
    multicast: float = workload.multicast_fraction * (workload.destinations_fraction or 0.5)
    messages: int = workload.messages
    copies = messages * (1 + nodes * (multicast + workload.broadcast_fraction))
    us = messages * (20 + 0.6 * nodes) + copies * (12 + 0.08 * nodes)
    return float(0.1 + us / 1e6)


class Size(NamedTuple):
    """What a message or a log consists of, on average; ``own`` are a message's own integers."""

    entries: float
    destinations: float
    empty: float
    own: float = 0


class Measured(NamedTuple):
    """What was measured of one run: what a message carries, by weighting, and the log."""

    nodes: int
    message: Mapping[str, Size]
    log: Size


def measured(row: Row) -> Measured:
    """What was measured of a run."""
    parts = ("integers", "entries", "destinations", "empty_entries")
    means = {
        COPY: [row[f"control_{part}"] / row["control_copies"] for part in parts],
        MESSAGE: [row[f"message_{part}_mean"] for part in parts],
        PROCESS: [row[f"message_{part}_mean_of_processes"] for part in parts],
    }
    log = [
        row[f"log_{part}_mean_of_processes"] for part in ("integers", "entries", "empty_entries")
    ]
    return Measured(
        row["nodes"],
        {weighting: _size(*each) for weighting, each in means.items()},
        Size(log[1], log[0] - 3 * log[1], log[2]),
    )


def _size(integers: float, entries: float, destinations: float, empty: float) -> Size:
    return Size(entries, destinations, empty, own=integers - 3 * entries - destinations)


Found = dict[Point, list[Measured]]  # of each seed
