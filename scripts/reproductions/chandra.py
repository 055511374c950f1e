"""Chandra, Gambhire & Kshemkalyani 2004, Figs. 3-8: what KS and KS' attach, as per cent of RST's n².

The paper prints no numbers with its figures but some percentages in the text. These are compared
with what is measured, and what the text says of the shape of the curves is judged.

What the paper leaves open, and what is assumed here:
- "30,000 messages" are multicasts, not copies: a process stops after 30,000/n messages, and a
  multicast is called one send event. If copies were meant, each of 100 processes that multicast would
  send six times, and the warm-up would be over when each has sent once. What a message carries is the
  mean of its copies, since each copy has a log of its own.
- How an entry of a log is counted. The text says 3 + |Dests| integers (Fig. 2); the percentages that it
  gives are nearer to 2 + |Dests|. Both are shown. The second was found by trying several, so its
  agreement is no evidence of what the authors counted.
- "The number of entries in the log" of KS'. With Fig. 2, one clock for each flag of its array, as
  protocols/ks_prime.py sends it; with 2 + |Dests|, one for each entry and one for each destination.
- Processes take turns of 500 ms (3.3), and a systemwide clock knows the current one. ``--clock turns``:
  it goes on with every turn, so that a process plays only one slot of n. ``rounds``: all processes play
  a slot, one after another, and then the clock goes on. ``events``: no turns; every event happens at
  its own time, as in a real system.
Both countings come from one run of KS, whose messages are the same as those of KS'.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from scripts import reproductions as shared
from scripts.reproductions import Claim, Finding, Row, curried
from testbed.experiment import Experiment, read_document
from testbed.experiment.expand import expand
from testbed.report.style import draw_curve

FILE = shared.EXPERIMENTS / "chandra.toml"
NEAR = 0.25  # how far from "about" a percentage may be, relative to it
SLIGHT = 0.8  # what a slight fall leaves of a percentage
FLAT = 0.15  # how far a constant curve may leave its mean, up and down together


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


class Figure(NamedTuple):
    """One of the paper's figures: the key that varies, and its four settings."""

    key: str
    label: str
    values: tuple[tuple[float, ...], ...]
    settings: tuple[Setting, ...]


ALL = (1, 2, 3, 4)  # the settings of a figure
CLOCKS = ("turns", "rounds", "events")
SLOT_MS = 500.0
SIZES = (10, 15, 20, 30, 40, 50, 60, 80, 100)
FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
FAR, NEARER = (20, 50, 100, 400, 1500, 6000), (50, 100, 200, 400, 1000)
INTERVALS = (50, 100, 200, 400, 800, 1200)
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
        (INTERVALS,) * 4,
        (
            Setting(nodes=40),
            Setting(nodes=20),
            Setting(mtt=400, nodes=20),
            Setting(multicast=0.9, nodes=20),
        ),
    ),
    6: Figure("workload.multicast_fraction", "M/T", (FRACTIONS,) * 4, FREQUENCIES),
    7: Figure("workload.destinations_fraction", "|Dests|/n", (FRACTIONS,) * 4, FREQUENCIES),
    8: Figure("workload.broadcast_fraction", "B/T", (FRACTIONS,) * 4, FREQUENCIES),
}


class Counting(NamedTuple):
    """A way of counting: the label of KS, and that of KS'."""

    ks: str
    ks_prime: str


COUNTINGS = (
    Counting("KS, 3+|Dests| (Fig. 2)", "KS', flags"),
    Counting("KS, 2+|Dests|", "KS', entries + dests"),
)
Curve = dict[float, float]
Curves = dict[tuple[int, int, str], Curve]  # by figure, setting from 1 on, and what is counted


class Counted(NamedTuple):
    """All curves, to be looked at in one way of counting."""

    curves: Curves
    counting: Counting

    def __call__(self, number: int, setting: int, prime: bool = False) -> Curve:
        """The curve of KS, or of KS', in a figure's setting."""
        return self.curves[number, setting, self.counting[prime]]


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    add("--figures", type=int, nargs="+", choices=FIGURES, default=[*FIGURES], metavar="N")
    add("--sizes", type=int, nargs="+", default=[*SIZES], metavar="N", help="of Fig. 3")
    add("--messages", type=int, default=30_000, help="of a run; a sixth is the warm-up")
    add("--clock", choices=CLOCKS, default="turns", help="what turns the processes take (turns)")
    add("--runs-per-point", type=int, default=1, help="seeds to average over; the paper has 10")


def reproduce(options: Namespace) -> None:
    """Run all points, show all percentages, judge the claims and draw the plots."""
    numbers = sorted(set(options.figures))
    points = {
        (number, which, x): expand(document(number, which, x, options), FILE)
        for number in numbers
        for which in ALL
        for x in values(number, which, options)
    }
    curves: Curves = {}
    for (number, which, x), rows in shared.run(points, options, integers).items():
        for name, percentage in percentages(rows).items():
            curves.setdefault((number, which, name), {})[x] = percentage
    print(
        f"{options.messages:,} multicasts a run, the first sixth not counted; clock: {options.clock}; "
        f"runs a point: {options.runs_per_point}"
    )
    for number in numbers:
        show(number, curves)
    for counting in COUNTINGS:
        title = f"What the paper says, counting {counting.ks}; {counting.ks_prime}"
        shared.show_claims(("Fig.", "", "paper"), CLAIMS, Counted(curves, counting), title)
    print(f"figures: {draw_all(curves, options.runs / 'chandra' / options.clock)}")


def values(number: int, which: int, options: Namespace) -> tuple[float, ...]:
    """The values on the x axis of a curve."""
    return tuple(sorted(set(options.sizes))) if number == 3 else FIGURES[number].values[which - 1]


def document(number: int, which: int, x: float, options: Namespace) -> dict[str, Any]:
    """The experiments of one point of a curve, one for each seed."""
    figure, base = FIGURES[number], read_document(FILE)
    setting = figure.settings[which - 1]
    topology = {**base["topology"], "nodes": setting.nodes, "mean_ms": setting.mtt}
    if options.clock != "events":
        topology |= {"turn_ms": SLOT_MS, "clock": options.clock}
    workload = {
        **base["workload"],
        "messages": options.messages,
        "warm_up_messages": options.messages // 6,
        "mean_interval_ms": setting.mimt,
        "multicast_fraction": 0 if number == 8 else setting.multicast,
    }
    table, key = figure.key.split(".")
    {"topology": topology, "workload": workload}[table][key] = x
    seeds = list(range(1, options.runs_per_point + 1))
    return {**base, "seed": seeds, "topology": topology, "workload": workload}


def integers(experiment: Experiment) -> float:
    """Roughly how much a run has to do: a copy of a message takes time as its log is long."""
    topology: Any = experiment.topology
    workload: Any = experiment.workload
    nodes: int = topology.nodes
    multicast: float = workload.multicast_fraction * (workload.destinations_fraction or 0.5)
    return float(nodes * (1 + nodes * (multicast + workload.broadcast_fraction)))


def percentages(runs: list[Row]) -> dict[str, float]:
    """What a message carries, as per cent of n², in all ways of counting; the mean over seeds."""
    each = [percentages_of_run(run) for run in runs]
    return {name: fmean(run[name] for run in each) for name in each[0]}


def percentages_of_run(run: Row) -> dict[str, float]:
    """What a message of a run carries, as per cent of n², in all ways of counting."""
    squared = run["nodes"] ** 2
    names = ("integers", "entries", "destinations", "empty_entries")
    fig2, entries, dests, empty = (run[f"control_{name}"] / run["control_copies"] for name in names)
    integers = {
        COUNTINGS[0].ks: fig2,
        COUNTINGS[1].ks: fig2 - entries,
        COUNTINGS[0].ks_prime: squared / 32 + dests + empty,
        COUNTINGS[1].ks_prime: squared / 32 + dests + entries,
    }
    return {name: 100 * value / squared for name, value in integers.items()}


def show(number: int, curves: Curves) -> None:
    """Show a figure of the paper as a table for each setting."""
    figure = FIGURES[number]
    for which, setting in enumerate(figure.settings, 1):
        rows = {name: curves[number, which, name] for counting in COUNTINGS for name in counting}
        shared.show_table(
            (figure.label, *(f"{x:g}" for x in rows[COUNTINGS[0].ks])),
            [[name, *(f"{y:.1f}" for y in curve.values())] for name, curve in rows.items()],
            title=f"Fig. {number}, S{which}{setting.words(figure.label)}: % of n²",
        )


def draw_all(curves: Curves, directory: Path) -> Path:
    """Plot the paper's figures, a panel for each setting."""
    for number in sorted({number for number, _, _ in curves}):
        with shared.plot(directory, f"fig-{number}", 0.7, 2, 2, share_y=number != 3) as panels:
            for which, axes in enumerate(panels, 1):
                for index, name in enumerate(name for counting in COUNTINGS for name in counting):
                    curve = curves[number, which, name]
                    draw_curve(axes, index, name, [*curve], [*curve.values()])
                axes.set_ylim(bottom=0)
                axes.set_title(f"S{which}", loc="left")
                axes.set_xlabel(FIGURES[number].label)
                axes.set_ylabel("% of n²")
    return directory


@curried
def about(found: Counted, number: int, x: float, percent: float, prime: bool = False) -> Finding:
    """All four settings are near a percentage at x."""
    values = [found(number, s, prime)[x] for s in ALL]
    shown = " ".join(f"{value:.3g}" for value in values)
    return Finding(f"{shown} %", [abs(value / percent - 1) <= NEAR for value in values])


@curried
def below(
    found: Counted, number: int, settings: tuple[int, ...], percent: float, prime: bool = False
) -> Finding:
    """The highest point of these settings is below a percentage."""
    tops = [max(found(number, s, prime).values()) for s in settings]
    shown = " ".join(f"{top:.3g}" for top in tops)
    return Finding(f"at most {shown} %", [top < percent for top in tops])


def falls(found: Counted) -> Finding:
    """KS takes a smaller part of n² the more processes there are."""
    curves = [[*found(3, s).values()] for s in ALL]
    shown = " ".join(f"{values[0]:.3g}→{values[-1]:.3g}" for values in curves)
    return Finding(f"{shown} %", [values == sorted(values, reverse=True) for values in curves])


@curried
def threshold(found: Counted, setting: int, paper: float) -> Finding:
    """KS takes less than KS' from about this number of processes on."""
    ks, prime = found(3, setting), found(3, setting, prime=True)
    sizes = [*ks]
    lead = [ks[n] - prime[n] for n in sizes]
    for i in range(1, len(sizes)):
        if lead[i] < 0 <= lead[i - 1]:
            share = lead[i - 1] / (lead[i - 1] - lead[i])
            crossing = sizes[i - 1] + share * (sizes[i] - sizes[i - 1])
            return Finding(f"n = {crossing:.0f}", [abs(crossing / paper - 1) <= NEAR])
    return Finding(f"none from {sizes[0]:g} to {sizes[-1]:g}", [False])


def levels_off(found: Counted) -> Finding:
    """KS's overhead rises with MTT, and hardly from the last but one MTT to the last."""
    curves = [[*found(4, s).values()] for s in ALL]
    shown = " ".join(f"{v[0]:.3g}→{v[-2]:.3g}→{v[-1]:.3g}" for v in curves)
    return Finding(f"{shown} %", [v[0] < v[-1] < v[-2] * (1 + FLAT) for v in curves])


@curried
def constant(
    found: Counted, number: int, settings: tuple[int, ...], since: float = 0, prime: bool = False
) -> Finding:
    """The curve hardly leaves its mean."""
    spreads = []
    for s in settings:
        values = [v for x, v in found(number, s, prime).items() if x >= since]
        spreads.append((max(values) - min(values)) / fmean(values))
    shown = " ".join(f"{100 * spread:.0f}" for spread in spreads)
    return Finding(f"within {shown} %", [spread <= FLAT for spread in spreads])


@curried
def falls_slightly(found: Counted, number: int) -> Finding:
    """In the small systems KS takes a little less the more often messages are multicast."""
    curves = [[*found(number, s).values()] for s in (1, 4)]
    shown = " ".join(f"{values[0]:.3g}→{values[-1]:.3g}" for values in curves)
    return Finding(f"{shown} %", [SLIGHT * v[0] < v[-1] < v[0] for v in curves])


@curried
def prime_is_less(found: Counted, number: int, settings: tuple[int, ...]) -> Finding:
    """KS' takes less than KS everywhere."""
    tops = []
    for s in settings:
        ks, prime = found(number, s), found(number, s, prime=True)
        tops.append(max(prime[x] / ks[x] for x in ks))
    shown = " ".join(f"{top:.2f}" for top in tops)
    return Finding(f"KS'/KS at most {shown}", [top < 1 for top in tops])


CLAIMS = (
    Claim(("3", "KS, n = 100, S1 to S4", "4 %"), about(3, 100, 4)),
    Claim(("3", "KS, n = 15, S1 to S4", "about 25 %"), about(3, 15, 25)),
    Claim(("3", "KS', n = 15, S1 to S4", "about 15 %"), about(3, 15, 15, prime=True)),
    Claim(("3", "KS, from the smallest n to the largest", "falls"), falls),
    Claim(("3", "KS below KS' from, S3", "n = 62"), threshold(3, 62)),
    Claim(("3", "KS below KS' from, S4", "n = 45"), threshold(4, 45)),
    Claim(("4", "KS, n = 15 (S1, S2, S4)", "never above 35 %"), below(4, (1, 2, 4), 35)),
    Claim(("4", "KS, n = 40 (S3)", "below 11 %"), below(4, (3,), 11)),
    Claim(("4", "KS, MTT growing", "rises, then is steady"), levels_off),
    Claim(("5", "KS, n = 20 (S2 to S4)", "below 20 %"), below(5, (2, 3, 4), 20)),
    Claim(("5", "KS', n = 20 (S2 to S4)", "below 12 %"), below(5, (2, 3, 4), 12, prime=True)),
    Claim(("5", "KS, MIMT from 200 ms on", "almost constant"), constant(5, ALL, since=200)),
    Claim(("5", "KS' and KS", "KS' is lower"), prime_is_less(5, ALL)),
    Claim(("6", "KS, M/T growing (S2, S3)", "constant"), constant(6, (2, 3))),
    Claim(("6", "KS, M/T growing (S1, S4)", "falls very slightly"), falls_slightly(6)),
    Claim(("6", "KS', M/T growing", "unaffected"), constant(6, ALL, prime=True)),
    Claim(("6", "KS' and KS", "KS' is lower"), prime_is_less(6, ALL)),
    Claim(("7", "KS, |Dests|/n growing (S2, S3)", "constant"), constant(7, (2, 3))),
    Claim(("7", "KS, |Dests|/n growing (S1, S4)", "falls very slightly"), falls_slightly(7)),
    Claim(("8", "KS, B/T growing (S2, S3)", "constant"), constant(8, (2, 3))),
    Claim(("8", "KS, B/T growing (S1, S4)", "falls very slightly"), falls_slightly(8)),
    Claim(("8", "KS' and KS (S1, S3, S4)", "KS' is lower"), prime_is_less(8, (1, 3, 4))),
)


if __name__ == "__main__":
    shared.main("chandra", __doc__, add_options, reproduce)
