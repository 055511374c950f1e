"""Mostefaoui & Raynal 1993, section 5: small stamps and resynchs against large stamps and no waiting.

The paper has no experiments. It argues that there is a trade-off between the earliest possible delivery
(BSS, with a vector for each group on every message) and the smallest stamps (its own protocol, with an
integer for each group, but resynchs that messages may have to wait for), and that the more synchronous
senders are, the better its own protocol does. All of this is measured here, side by side.

Assumptions: 24 processes in 6 groups of 6, channels with exponential delays of 5 ms on average, and
Poisson senders, all members of groups, with 50 messages a second each, each to one of its sender's
groups; one of these is varied at a time. "Control" is the bytes of stamps and of whole resynchs, with
their header of 32 bytes, for each copy of a message. "Added" is how much later a message is delivered
than at the earliest moment that causal order allows, as the oracle finds it.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from scripts import reproductions as shared
from scripts.reproductions import Claim, Finding, Row, curried
from testbed.experiment import Experiment, parse, read_document
from testbed.report.style import draw_curve

FILE = shared.EXPERIMENTS / "mostefaoui.toml"
TIMER_MS = 10.0
FEW = 3  # times fewer resynchs, with a timer and one busy sender
PLAIN, TIMER, BSS = "M–R", f"M–R, timer {TIMER_MS:g} ms", "BSS"
PROTOCOLS: dict[str, dict[str, Any]] = {
    PLAIN: {"name": "mostefaoui-raynal", "entries": "all"},
    TIMER: {"name": "mostefaoui-raynal", "entries": "all", "resynch_after_ms": TIMER_MS},
    BSS: {"name": "bss", "entries": "all"},
}
RING = {"model": "ring", "groups": 6, "shared": 2}  # everybody is in one or two groups of six
ONE_GROUP, LOCK_STEP = "one group", "lock-step"
Tables = dict[str, dict[str, Any]]  # what differs from the file


class Panel(NamedTuple):
    """What is varied, the tables for each of its values, and the protocols that are run."""

    title: str
    label: str
    values: dict[str, Tables]
    protocols: tuple[str, ...] = tuple(PROTOCOLS)


TIMERS_MS = (0.0, 2.0, 5.0, 10.0, 20.0, 40.0)
TOGETHER = {"model": "bursts", "burst": 1, "senders": 0, "each_group": True, "duration_ms": 2000.0}
IN_TURN = {"model": "steady", "senders": 0, "each_group": True, "duration_ms": 2000.0}
ONE_BUSY = {"senders": 1, "rate_per_s": 400.0}
PANELS = {
    "groups": Panel(
        "more groups",
        "number of groups",
        {str(k): {"groups": {"groups": k}} for k in (2, 4, 6, 8, 12, 16)},
    ),
    "size": Panel(
        "larger groups",
        "members of a group",
        {str(k): {"groups": {"size": k}} for k in (2, 4, 6, 8, 12)},
    ),
    "overlap": Panel(
        "more overlap (4 groups)",
        "members that are in earlier groups too",
        {str(k): {"groups": {"groups": 4, "overlap": k}} for k in range(6)},
    ),
    "senders": Panel(
        "fewer busy senders, as many messages",
        "senders",
        {
            str(k): {"groups": RING, "workload": {"senders": k, "rate_per_s": 600 / k}}
            for k in (24, 12, 6, 3, 1)
        },
    ),
    "interval": Panel(
        "longer between messages",
        "mean interval of a sender (ms)",
        {f"{ms:g}": {"workload": {"rate_per_s": 1000 / ms}} for ms in (5, 10, 20, 50, 100)},
    ),
    "synchrony": Panel(
        "how synchronous senders are (the first in lock-step too)",
        "senders",
        {
            ONE_GROUP: {
                "groups": {"model": "everybody"},
                "workload": {**TOGETHER, "interval_ms": 200.0},
            },
            LOCK_STEP: {"groups": RING, "workload": {**TOGETHER, "interval_ms": 200.0}},
            "at once": {"groups": RING, "workload": {**TOGETHER, "interval_ms": 20.0}},
            "in turn": {"groups": RING, "workload": {**IN_TURN, "interval_ms": 20.0}},
            "at random": {"groups": RING},
            "one alone": {"groups": RING, "workload": ONE_BUSY},
        },
    ),
    "timer": Panel(
        "a longer timer",
        "timer (ms)",
        {f"{ms:g}": {"protocol": {"resynch_after_ms": ms}} for ms in TIMERS_MS},
        (PLAIN,),
    ),
    "timer-one": Panel(
        "a longer timer, one busy sender",
        "timer (ms)",
        {
            f"{ms:g}": {"protocol": {"resynch_after_ms": ms}, "groups": RING, "workload": ONE_BUSY}
            for ms in TIMERS_MS
        },
        (PLAIN,),
    ),
}


class Measured(NamedTuple):
    """The means of one point over its seeds."""

    stamp: float  # bytes a copy
    control: float  # bytes a copy, resynchs included
    resynchs: float  # copies of them, for each copy of a message
    resynchs_sent: float
    delay: float  # ms
    added: float  # ms
    held: float  # messages in a process's delivery queue, on average


Found = dict[tuple[str, str, str], Measured]  # by panel, value and protocol


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    add("--panels", nargs="+", choices=PANELS, default=[*PANELS], metavar="NAME")
    add("--duration-ms", type=float, default=2000.0, help="how long senders send")
    add("--seeds", type=int, default=3, help="groups and workloads to average over")


def reproduce(options: Namespace) -> None:
    """Run all points, show every panel, judge the claims and draw the plots."""
    panels = [*dict.fromkeys(options.panels)]
    points = {
        (panel, value, protocol): [
            experiment(panel, value, protocol, seed, options.duration_ms)
            for seed in range(1, options.seeds + 1)
        ]
        for panel in panels
        for value in PANELS[panel].values
        for protocol in PANELS[panel].protocols
    }
    rows = shared.run(points, options, absent=0)
    found = {key: averaged([measured(row) for row in each]) for key, each in rows.items()}
    print(f"{options.duration_ms:g} ms of sending, means over {options.seeds} seeds")
    for panel in panels:
        show(panel, found)
    shared.show_claims(("section", "the paper"), CLAIMS, found)
    print(f"figures: {draw_all(found, options.runs / 'mostefaoui')}")


def experiment(panel: str, value: str, protocol: str, seed: int, duration_ms: float) -> Experiment:
    """One run of a point."""
    document = read_document(FILE)
    changes = PANELS[panel].values[value]
    document["groups"]["groups"] = 6
    document["protocol"] = {**PROTOCOLS[protocol], **changes.get("protocol", {})}
    document["seed"] = seed
    for table in ("groups", "workload"):
        changed = changes.get(table, {})
        document[table] = changed if "model" in changed else {**document[table], **changed}
    document["workload"]["duration_ms"] = duration_ms
    return parse(document, FILE)[0]


def measured(row: Row) -> Measured:
    """The figures of one run."""
    copies = row["stamped_copies"]
    return Measured(
        stamp=row["stamp_bytes"] / copies,
        control=(row["stamp_bytes"] + row.get("resynch_bytes", 0)) / copies,
        resynchs=row.get("resynch_copies", 0) / copies,
        resynchs_sent=row.get("resynchs", 0),
        delay=row["delay_ms_mean"],
        added=row["added_delay_ms_mean"],
        held=row["delivery_queue_mean"],
    )


def averaged(runs: list[Measured]) -> Measured:
    """The means over seeds."""
    return Measured(*map(fmean, zip(*runs, strict=True)))


SHOWN = (
    ("stamp, bytes a copy", "stamp", "{:.0f}"),
    ("control, bytes a copy", "control", "{:.0f}"),
    ("resynchs a copy", "resynchs", "{:.2f}"),
    ("delay, ms", "delay", "{:.1f}"),
    ("of this added, ms", "added", "{:.2f}"),
    ("held messages", "held", "{:.2f}"),
)


def show(panel: str, found: Found) -> None:
    """Show a panel as a table."""
    its = PANELS[panel]
    rows = [
        [
            "" if index else label,
            protocol,
            *(form.format(getattr(found[panel, value, protocol], key)) for value in its.values),
        ]
        for label, key, form in SHOWN
        for index, protocol in enumerate(its.protocols)
    ]
    shared.show_table((its.label, "", *its.values), rows, words=2, title=its.title)


def stamps(found: Found) -> Finding:
    """A stamp takes 4|G| bytes, and 4Σ|g| under BSS."""
    pairs = [
        (found["groups", k, PLAIN].stamp, found["groups", k, BSS].stamp, int(k))
        for k in PANELS["groups"].values
    ]
    holds = all(mr == 4 * k and bss == 4 * 6 * k for mr, bss, k in pairs)
    return Finding(" ".join(f"{mr:.0f}/{bss:.0f}" for mr, bss, _ in pairs), holds)


def bss_adds_nothing(found: Found) -> Finding:
    """BSS delivers at the earliest moment."""
    most = max(m.added for (_, _, protocol), m in found.items() if protocol == BSS)
    return Finding(f"at most {most:g} ms", most == 0)


def lock_step(found: Found) -> Finding:
    """If nobody is silent in any phase, no resynch is sent."""
    its = found["synchrony", LOCK_STEP, PLAIN]
    return Finding(f"{its.resynchs_sent:g} resynchs, {its.added:g} ms added", not its.resynchs_sent)


@curried
def lock_step_is_optimal(found: Found, value: str) -> Finding:
    """In lock-step a message waits for nothing but what it depends on."""
    added = found["synchrony", value, PLAIN].added
    return Finding(f"{added:.2f} ms added", added == 0)


def nearer_to_optimal(found: Found) -> Finding:
    """The more synchronous, the nearer to optimal; all in the same groups."""
    values = [value for value in PANELS["synchrony"].values if value != ONE_GROUP]
    added = [found["synchrony", value, PLAIN].added for value in values]
    return Finding(" ".join(f"{ms:.2f}" for ms in added) + " ms", added == sorted(added))


@curried
def timer_saves(found: Found, panel: str, factor: float) -> Finding:
    """With the timer fewer resynchs are sent."""
    plain, timer = (found[panel, ms, PLAIN].resynchs_sent for ms in ("0", f"{TIMER_MS:g}"))
    return Finding(f"{plain:,.0f} → {timer:,.0f}", timer * factor <= plain)


def timer_costs(found: Found) -> Finding:
    """The longer the timer, the later the delivery."""
    delays = [found["timer", ms, PLAIN].delay for ms in PANELS["timer"].values]
    return Finding(" ".join(f"{ms:.1f}" for ms in delays) + " ms", delays == sorted(delays))


@curried
def trade_off(found: Found, panel: str) -> Finding:
    """M–R, resynchs included, takes fewer bytes than BSS somewhere, and delivers later everywhere."""
    values = PANELS[panel].values
    fewer = [v for v in values if found[panel, v, PLAIN].control < found[panel, v, BSS].control]
    later = [found[panel, v, PLAIN].delay / found[panel, v, BSS].delay for v in values]
    where = ", ".join(fewer) or "none"
    words = f"fewer bytes at {where}; {min(later):.2f}–{max(later):.2f} × delay"
    return Finding(words, bool(fewer) and min(later) > 1)


CLAIMS = (
    Claim(("5.2", "stamps of 4|G| bytes, BSS: 4Σ|g|"), stamps),
    Claim(("5.1", "BSS delivers as early as possible"), bss_adds_nothing),
    Claim(("3.5", "in lock-step no resynch is sent"), lock_step),
    Claim(("5.1", "… and deliveries are optimal: one group"), lock_step_is_optimal(ONE_GROUP)),
    Claim(("", "… several groups"), lock_step_is_optimal(LOCK_STEP)),
    Claim(("5.1", "the more synchronous, the nearer to optimal"), nearer_to_optimal),
    Claim(("3.5", "a timer decreases the number of resynchs"), timer_saves("timer", 1)),
    Claim(("", f"… one busy sender: at least {FEW} times"), timer_saves("timer-one", FEW)),
    Claim(("", "a longer timer delays deliveries"), timer_costs),
    *(
        Claim(("5.2", f"trade-off, {PANELS[panel].title}"), trade_off(panel))
        for panel in ("groups", "size", "overlap", "senders", "interval")
    ),
)


def draw_all(found: Found, directory: Path) -> Path:
    """Plot control bytes and delay of every panel that was run."""
    shown = (("control", "control (bytes a copy)"), ("delay", "delay (ms)"))
    for panel in dict.fromkeys(panel for panel, _, _ in found):
        its = PANELS[panel]
        with shared.plot(directory, panel, 0.4, 1, 2) as panels:
            for axes, (key, label) in zip(panels, shown, strict=True):
                for index, protocol in enumerate(its.protocols):
                    values = [getattr(found[panel, v, protocol], key) for v in its.values]
                    draw_curve(axes, index, protocol, [*its.values], values)
                axes.set(ylim=(0, None), xlabel=its.label, ylabel=label)
    return directory


if __name__ == "__main__":
    shared.main("mostefaoui", __doc__, add_options, reproduce)
