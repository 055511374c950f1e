"""Baldoni, Friedman & van Renesse 1996: the daisy's control information, messages and delays.

The paper has no measurements, but says what they must be: in a group of m a message carries a vector of
m entries, whatever the number of processes; it takes one broadcast in its sender's group, one in every
group of servers on its way, and one in every group with recipients; messages that cross groups take
longer. All of this is measured, and compared with protocols without groups: Timestamp, which
broadcasts, and RST and KS, which send to any set of processes.

Assumptions: channels have exponential delays of 5 ms on average; all processes send, 100 messages a
second together, each to three others; Timestamp sends as many to everybody. With L levels groups have
about n^(1/L) members. Under RST and KS every process sends at least 20 messages, so that the logs of KS
fill. "Control" includes the list of destinations. "Datagrams" are everything that is sent, divided by
the number of messages: copies of messages, reports and heartbeats.
"""

from argparse import ArgumentParser, Namespace
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from scripts import reproductions as shared
from scripts.reproductions import Claim, Finding, Row, curried
from testbed.experiment import Experiment, parse, read_document
from testbed.report.style import draw_curve

FILE = shared.EXPERIMENTS / "baldoni.toml"
SIZES = (8, 16, 32, 64, 128, 256)
LEVELS = (2, 3, 4)
DAISIES = {levels: f"daisy, {levels} levels" for levels in LEVELS}
OTHERS = ("timestamp", "rst", "ks")
CURVES = (*DAISIES.values(), *OTHERS)
PER_SECOND = 100
DESTINATIONS = 3
ENOUGH = 20  # messages of each process, so that the logs of KS fill
VARIED = 64  # processes on two levels, for the optimisations of section 3.4
VARIANTS: dict[str, dict[str, Any]] = {
    "section 3.1": {"safe": False},
    "section 3.1, safe": {},
    "1. relayed early": {"safe": False, "early": True},
    "2. to recipients, k = 1": {"inside": "recipients", "resilience": 1},
    "2. to recipients, k = 2": {"inside": "recipients", "resilience": 2},
    "3. through the server": {"inside": "server"},
}


class Measured(NamedTuple):
    """The figures of one run."""

    control: float  # bytes a copy of a message
    copies: float  # of a message
    broadcasts: float  # a message
    datagrams: float  # a message
    delay: float  # ms
    within: float | None  # ms
    across: float | None


Found = dict[tuple[str, int], Measured]  # by curve or variant, and number of processes


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=[*SIZES], metavar="N", help="numbers of processes")
    add("--messages", type=int, default=200, help="messages of a run")


def reproduce(options: Namespace) -> None:
    """Run all points, show what was measured, judge the claims and draw the plot."""
    points = [(name, nodes) for name in CURVES for nodes in sorted(set(options.sizes))]
    points += [(name, VARIED) for name in VARIANTS]
    rows = shared.run({point: [experiment(*point, options)] for point in points}, options, work)
    found = {point: measured(row, daisy=point[0] not in OTHERS) for point, (row,) in rows.items()}
    print(f"{options.messages} messages a run")
    show(found)
    shared.show_claims(("the paper",), CLAIMS, found)
    show_variants(found)
    print(f"figures: {draw(found, options.runs / 'baldoni')}")


def experiment(name: str, nodes: int, options: Namespace) -> Experiment:
    """The run of a curve or variant with this number of processes."""
    document = read_document(FILE)
    document["seed"] = 1
    document["topology"]["nodes"] = nodes
    document["workload"] |= {
        "messages": options.messages,
        "mean_interval_ms": 1000.0 * nodes / PER_SECOND,
        "destinations_fraction": DESTINATIONS / nodes,
    }
    if name in OTHERS:
        document["protocol"] = {"name": name}
        document["workload"]["messages"] = max(options.messages, ENOUGH * nodes)
    else:
        levels = 2 if name in VARIANTS else int(name.split()[1])
        document["protocol"] |= {"levels": levels, "group_size": group_size(nodes, levels)}
        document["protocol"] |= VARIANTS.get(name, {})
    if name == "timestamp":
        document["workload"] = {
            "model": "poisson",
            "senders": 0,
            "rate_per_s": PER_SECOND / nodes,
            "duration_ms": 1000.0 * options.messages / PER_SECOND,
        }
    return parse(document, FILE)[0]


def group_size(nodes: int, levels: int) -> int:
    """The size of a group if groups on all levels have about the same size."""
    root: float = nodes ** (1 / levels)
    return max(2, ceil(root - 1e-9))


def work(point: Experiment) -> float:
    """Roughly how much a run has to do."""
    topology: Any = point.topology
    nodes: int = topology.nodes
    return float(nodes**3 if point.protocol.name == "rst" else nodes**2)


def measured(row: Row, daisy: bool) -> Measured:
    """The figures of a run; without groups every message is one broadcast."""
    return Measured(
        control=row["broadcast_control_bytes_per_copy"]
        if daisy
        else row["control_bytes"] / row["copies"],
        copies=row["broadcast_copies"] / row["multicasts"] if daisy else row["copies"],
        broadcasts=row["broadcasts_per_message"] if daisy else 1.0,
        datagrams=row["datagrams_per_message"] if daisy else row["copies"] / row["multicasts"],
        delay=row["delay_ms_mean"],
        within=row["delay_within_groups_ms_mean"] if daisy else None,
        across=row["delay_across_groups_ms_mean"] if daisy else None,
    )


def sizes(found: Found) -> list[int]:
    """The numbers of processes on the curves."""
    return sorted({nodes for name, nodes in found if name in CURVES})


def largest(found: Found, name: str) -> Measured:
    """The end of a curve, in the largest system."""
    return found[name, sizes(found)[-1]]


@curried
def control_is_the_groups(found: Found, levels: int) -> Finding:
    """Control information grows as a group does (4 bytes a member and a fixed part), not as n."""
    n = sizes(found)
    values = [found[DAISIES[levels], nodes].control for nodes in n]
    factor = (values[-1] / values[0]) / (n[-1] / n[0])
    return Finding(" ".join(f"{v:.0f}" for v in values), factor < 0.5)


def less_than_others(found: Found) -> Finding:
    """In the largest system the daisy attaches least."""
    least = min(largest(found, name).control for name in DAISIES.values())
    others = [largest(found, name).control for name in OTHERS]
    shown = " ".join(f"{v:,.0f}" for v in others)
    return Finding(f"{least:.0f} against {shown}", least < min(others))


def across_takes_longer(found: Found) -> Finding:
    """Servers on the way take time."""
    ends = [largest(found, name) for name in DAISIES.values()]
    ratios = [(end.across or 0) / (end.within or 1) for end in ends]
    return Finding(" ".join(f"{ratio:.1f} ×" for ratio in ratios), min(ratios) > 1)


def more_levels_take_longer(found: Found) -> Finding:
    """Each level adds its broadcasts, up and down."""
    delays = [largest(found, name).across or 0 for name in DAISIES.values()]
    return Finding(" ".join(f"{ms:.1f}" for ms in delays) + " ms", delays == sorted(delays))


CLAIMS = (
    *(
        Claim((f"{n} levels: control grows far slower than n",), control_is_the_groups(n))
        for n in LEVELS
    ),
    Claim(("the daisy attaches less than protocols without groups",), less_than_others),
    Claim(("messages that cross groups take longer",), across_takes_longer),
    Claim(("the more levels, the longer",), more_levels_take_longer),
)
SHOWN = (
    ("control, bytes a copy", "control", "{:,.0f}"),
    ("broadcasts a message", "broadcasts", "{:.1f}"),
    ("datagrams a message", "datagrams", "{:,.0f}"),
    ("delay, ms", "delay", "{:.1f}"),
    ("delay within groups, ms", "within", "{:.1f}"),
    ("delay across groups, ms", "across", "{:.1f}"),
)
COMPARED = (
    ("copies a message", "copies", "{:.1f}"),
    ("control, bytes a copy", "control", "{:,.0f}"),
    ("datagrams a message", "datagrams", "{:,.0f}"),
    ("within groups, ms", "within", "{:.1f}"),
    ("across, ms", "across", "{:.1f}"),
)


def show(found: Found) -> None:
    """Show all figures of all curves."""
    rows = []
    for label, key, form in SHOWN:
        for name in DAISIES.values() if key in ("within", "across") else CURVES:
            values = (getattr(found[name, nodes], key) for nodes in sizes(found))
            rows.append([label, name, *map(form.format, values)])
            label = ""
    shared.show_table(("", "processes", *map(str, sizes(found))), rows, words=2)


def show_variants(found: Found) -> None:
    """Show what the optimisations of section 3.4 gain and cost."""
    rows = [
        [name, *(form.format(getattr(found[name, VARIED], key)) for _, key, form in COMPARED)]
        for name in VARIANTS
    ]
    shared.show_table((f"{VARIED} processes, 2 levels", *(label for label, _, _ in COMPARED)), rows)


def draw(found: Found, directory: Path) -> Path:
    """Plot control information and delay against the number of processes."""
    places = sizes(found)
    with shared.plot(directory, "control-and-delay", 0.45, 1, 2) as panels:
        shown = (("control", "control (bytes a copy)"), ("delay", "delay (ms)"))
        for axes, (key, label) in zip(panels, shown, strict=True):
            for index, name in enumerate(CURVES):
                values = [getattr(found[name, nodes], key) for nodes in places]
                draw_curve(axes, index, name, places, values)
            axes.set(xlabel="processes", ylabel=label, xscale="log", yscale="log")
            axes.set_xticks(places, [str(nodes) for nodes in places])
            axes.minorticks_off()
    return directory


if __name__ == "__main__":
    shared.main("baldoni", __doc__, add_options, reproduce)
