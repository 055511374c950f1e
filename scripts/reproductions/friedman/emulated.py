"""The same points from the packets of an emulated network, one topology each, beside the simulated."""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from scripts.reproductions.chapter import Cells, Table
from scripts.reproductions.friedman.points import (
    DATA,
    FIGURES,
    LABELS,
    NETWORK,
    OVERLAY,
    PROBABILITIES,
    PROTOCOLS,
    Found,
    Point,
    Scale,
    experiment,
    measured,
)
from scripts.reproductions.running import run
from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.report.style import GREY, look
from testbed.sweep.directory import finished
from testbed.sweep.points import Sweep, cost
from testbed.topologies.flat import PureRandom

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENGINE, FRAMING = "virtual", "udp"
SEED = 1
DURATION_MS = 1.0  # the paper's bursts for longer would take hours
COUNTS = ("multicasts", "deliveries", "copies", "messages", "bytes", "control_bytes")
# What a run takes: to set up a node or a link, and to send a copy of a message over its way.
SECONDS_PER_NODE, SECONDS_PER_COPY = 0.04, 0.0001


def experiments(scale: Scale) -> dict[Point, list[Experiment]]:
    """The run of every point that is emulated."""
    return {point: [experiment(point, SEED, FRAMING)] for point in scale.emulated()}


def emulate(scale: Scale, options: Namespace) -> Found:
    """Say how long it takes, and run what has not been run yet; the guests are side by side."""
    if not (todo := experiments(scale)):
        return {}
    print(f"reproduce: {estimate(todo, options)}", file=sys.stderr, flush=True)
    found = run(todo, options, seconds)
    for row in (row for rows in found.values() for row in rows if row["fidelity"] != "exact"):
        raise UserError(f"{row['run']}: its network was {row['fidelity']}, not exact")
    return {point: measured(rows) for point, rows in found.items()}


def estimate(todo: Mapping[Point, Sequence[Experiment]], options: Namespace) -> str:
    """How long the runs take that are left, in a sentence."""
    sweep = Sweep.of([one for each in todo.values() for one in each])
    directory = options.runs / sweep.within
    done = finished(directory, sweep) if directory.exists() else {}
    left = [its for point, its in sweep.points.items() if point not in done]
    minutes = sum(map(seconds, left)) / 60
    return (
        f"{len(left)} of {len(sweep.points)} runs on emulated networks are to be made, some "
        f"{minutes:.0f} minutes of a processor; if stopped, the same command goes on"
    )


def seconds(experiment: Experiment) -> float:
    """Roughly how long an emulated run takes."""
    assert isinstance(experiment.topology, PureRandom)
    nodes = experiment.topology.nodes
    links = PROBABILITIES[nodes] * nodes * (nodes - 1) / 2
    return SECONDS_PER_NODE * (nodes + links) + SECONDS_PER_COPY * cost(experiment)


def beside(found: Found, scale: Scale) -> Table:
    """Where the figures of the packets differ from those of the simulator on the same topology."""
    rows: list[Cells] = []
    for key, protocol, data in product(FIGURES, (OVERLAY, NETWORK), DATA):
        points = [p for p in scale.emulated() if (p.protocol, p.data) == (protocol, data)]
        pairs = [(found[point][key][0], simulated(found, point, key)) for point in points]
        if any(ours != theirs for ours, theirs in pairs):
            differences = [_difference(*pair) for pair in pairs]
            rows.append([LABELS[protocol], str(data), key, *differences])
    heads = ("nodes", "data", "", *map(str, scale.sizes))
    title = "What differs from the simulator on the same topology, if measured from packets"
    return Table("packets", title, heads, rows, words=3, caption=caption(found, scale))


def _difference(ours: float, theirs: float) -> str:
    return "same" if ours == theirs else f"{(ours - theirs) / (theirs or 1):+.3%}"


def simulated(found: Found, point: Point, key: str) -> float:
    """A figure of the simulator on the topology that was emulated."""
    return found[point._replace(engine="simulate")][key][SEED - 1]


def caption(found: Found, scale: Scale) -> str:
    """What one must know to read the table, and whether all is counted alike."""
    points = scale.emulated()
    differ = [p for p in points if any(found[p][k][0] != simulated(found, p, k) for k in COUNTS)]
    alike = f"the same at {len(points) - len(differ)} of {len(points)} points"
    return (
        "One topology each, so there is no interval; Timestamp along a tree, since for n − 1 copies "
        "switches would have to know the flows of n² pairs. Messages, deliveries, copies, packets "
        f"and bytes are {alike}. To read the clock takes a nanosecond in the guest, so processes that "
        "send at the same time do so some nanoseconds apart. On links that are full, that decides "
        "which of two packets is first, and so when messages arrive, how many wait, and, for Overlay, "
        "which copies are not sent back, and how far they go."
    )


def mark(axes: "Axes", found: Found, scale: Scale, data: int, key: str) -> None:
    """Draw the emulated points as rings, and the simulated ones on the same topology as crosses."""
    ring: Any = {"linestyle": "none", "marker": "o", "markerfacecolor": "none", "markersize": 9}
    cross: Any = {"linestyle": "none", "marker": "+", "markersize": 6, "zorder": 5}
    for index, protocol in enumerate(PROTOCOLS):
        points = [p for p in scale.emulated() if (p.protocol, p.data) == (protocol, data)]
        sizes = [point.nodes for point in points]
        colour = look(index).colour
        axes.plot(sizes, [found[p][key][0] for p in points], color=colour, **ring)
        axes.plot(sizes, [simulated(found, p, key) for p in points], color="black", **cross)
    axes.plot([], [], color=GREY, label=f"from packets, topology {SEED}", **ring)
    axes.plot([], [], color="black", label=f"simulated, topology {SEED}", **cross)
