"""Mostefaoui & Raynal 1993, section 5: small stamps and resynchs against large stamps and no waiting.

The paper has no experiments. It argues that there is a trade-off between the earliest possible delivery
(BSS, with a vector for each group on every message) and the smallest stamps (its own protocol, with an
integer for each group, but resynchs that messages may have to wait for), and that the more synchronous
senders are, the better its own protocol does. All of this is measured here, side by side.

What is taken: 24 processes in 6 groups of 6, channels with exponential delays of 5 ms on average, and
Poisson senders, all members of groups, with 50 messages a second each, each to one of its sender's
groups; of these, one at a time is varied. "Control" is the bytes of stamps and of whole resynchs, 32
bytes of header included, for each copy of a message. "Added" is how much later than at the earliest
moment that causal order allows, by the oracle, a message is delivered.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from testbed.commands.terminal import progress_bar
from testbed.errors import UserError
from testbed.experiment import Experiment, parse, read_document
from testbed.report.style import PAGE, draw_curve, new_figure, save, styled
from testbed.sweep.points import Sweep
from testbed.sweep.runner import run_points

FILE = Path(__file__).parents[1] / "experiments" / "mostefaoui.toml"
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
    """What is varied, and the tables for each of its values; by protocols, if that is not all."""

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


Key = tuple[str, str, str]  # panel, value, protocol
Found = dict[Key, Measured]


def main() -> int:
    """Sweep, show every panel, judge what the paper says, draw."""
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce mostefaoui", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--panels", nargs="+", choices=PANELS, default=[*PANELS], metavar="NAME")
    add("--duration-ms", type=float, default=2000.0, help="how long senders send")
    add("--seeds", type=int, default=3, help="groups and workloads to average over")
    add("--master", default="local[*]", help="where Spark runs")
    add("--runs", type=Path, default=Path("runs"))
    options = parser.parse_args()
    points = {
        (panel, value, protocol, seed): experiment(panel, value, protocol, seed, options)
        for panel in dict.fromkeys(options.panels)
        for value in PANELS[panel].values
        for protocol in PANELS[panel].protocols
        for seed in range(1, options.seeds + 1)
    }
    try:
        found = measure(points, options)
    except UserError as error:
        sys.exit(f"reproduce: {error}")
    print(f"{options.duration_ms:g} ms of sending, means over {options.seeds} seeds")
    for panel in dict.fromkeys(options.panels):
        show(panel, found)
    show_claims(found)
    print(f"figures: {draw_all(found, options.runs / 'mostefaoui')}")
    return 0


def experiment(
    panel: str, value: str, protocol: str, seed: int, options: argparse.Namespace
) -> Experiment:
    """One run."""
    document = read_document(FILE)
    changes = PANELS[panel].values[value]
    document["groups"]["groups"] = 6
    document["protocol"] = {**PROTOCOLS[protocol], **changes.get("protocol", {})}
    document["seed"] = seed
    for table in ("groups", "workload"):
        changed = changes.get(table, {})
        document[table] = changed if "model" in changed else {**document[table], **changed}
    document["workload"]["duration_ms"] = options.duration_ms
    return parse(document, FILE)[0]


def measure(
    points: dict[tuple[str, str, str, int], Experiment], options: argparse.Namespace
) -> Found:
    """Run what has not been run, and take the means over seeds."""
    sweep = Sweep.of([*points.values()])
    with progress_bar(sweep.name) as progress:
        frame = run_points(sweep, options.runs, options.master, progress)
    rows = {row["point"]: measured(row) for row in frame.fillna(0).to_dict("records")}
    seeds: dict[Key, list[Measured]] = {}
    for (panel, value, protocol, _), point in points.items():
        (identity,) = Sweep.of([point]).points
        seeds.setdefault((panel, value, protocol), []).append(rows[identity])
    return {key: Measured(*map(fmean, zip(*each, strict=True))) for key, each in seeds.items()}


def measured(row: dict[Any, Any]) -> Measured:
    """What one run tells."""
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


SHOWN = (
    ("stamp, bytes a copy", "stamp", "{:.0f}"),
    ("control, bytes a copy", "control", "{:.0f}"),
    ("resynchs a copy", "resynchs", "{:.2f}"),
    ("delay, ms", "delay", "{:.1f}"),
    ("of this added, ms", "added", "{:.2f}"),
    ("held messages", "held", "{:.2f}"),
)


def show(panel: str, found: Found) -> None:
    """A panel as a table."""
    out = Console(highlight=False, width=110)
    its = PANELS[panel]
    out.print(f"[bold]{its.title}[/]")
    table = Table(box=None, pad_edge=False)
    table.add_column(its.label)
    table.add_column("")
    for value in its.values:
        table.add_column(value, justify="right")
    for label, key, form in SHOWN:
        for index, protocol in enumerate(its.protocols):
            cells = (getattr(found[panel, value, protocol], key) for value in its.values)
            table.add_row("" if index else label, protocol, *map(form.format, cells))
    out.print(table)


Judge = Callable[[Found], tuple[str, bool]]


def stamps(found: Found) -> tuple[str, bool]:
    """4|G| bytes against 4Σ|g|."""
    pairs = [
        (found["groups", k, PLAIN].stamp, found["groups", k, BSS].stamp, int(k))
        for k in PANELS["groups"].values
    ]
    holds = all(mr == 4 * k and bss == 4 * 6 * k for mr, bss, k in pairs)
    return " ".join(f"{mr:.0f}/{bss:.0f}" for mr, bss, _ in pairs), holds


def bss_adds_nothing(found: Found) -> tuple[str, bool]:
    """BSS delivers at the earliest moment."""
    most = max(m.added for (_, _, protocol), m in found.items() if protocol == BSS)
    return f"at most {most:g} ms", most == 0


def lock_step(found: Found) -> tuple[str, bool]:
    """Without a phase in which somebody is silent nothing is told."""
    its = found["synchrony", LOCK_STEP, PLAIN]
    return f"{its.resynchs_sent:g} resynchs, {its.added:g} ms added", not its.resynchs_sent


def lock_step_is_optimal(value: str) -> Judge:
    """In lock-step a message waits for nothing but what it depends on."""

    def judge(found: Found) -> tuple[str, bool]:
        added = found["synchrony", value, PLAIN].added
        return f"{added:.2f} ms added", added == 0

    return judge


def nearer_to_optimal(found: Found) -> tuple[str, bool]:
    """The more synchronous, the nearer to optimal; all in the same groups."""
    values = [value for value in PANELS["synchrony"].values if value != ONE_GROUP]
    added = [found["synchrony", value, PLAIN].added for value in values]
    return " ".join(f"{ms:.2f}" for ms in added) + " ms", added == sorted(added)


def timer_saves(panel: str, factor: float) -> Judge:
    """With the timer fewer resynchs are sent."""

    def judge(found: Found) -> tuple[str, bool]:
        plain, timer = (found[panel, ms, PLAIN].resynchs_sent for ms in ("0", f"{TIMER_MS:g}"))
        return f"{plain:,.0f} → {timer:,.0f}", timer * factor <= plain

    return judge


def timer_costs(found: Found) -> tuple[str, bool]:
    """The longer the timer, the later the delivery."""
    delays = [found["timer", ms, PLAIN].delay for ms in PANELS["timer"].values]
    return " ".join(f"{ms:.1f}" for ms in delays) + " ms", delays == sorted(delays)


def trade_off(panel: str) -> Judge:
    """M–R with its resynchs against BSS: fewer bytes where, and how much later."""

    def judge(found: Found) -> tuple[str, bool]:
        values = PANELS[panel].values
        fewer = [v for v in values if found[panel, v, PLAIN].control < found[panel, v, BSS].control]
        later = [found[panel, v, PLAIN].delay / found[panel, v, BSS].delay for v in values]
        where = ", ".join(fewer) or "none"
        words = f"fewer bytes at {where}; {min(later):.2f}–{max(later):.2f} × delay"
        return words, bool(fewer) and min(later) > 1

    return judge


CLAIMS: tuple[tuple[str, str, Judge], ...] = (
    ("5.2", "stamps of 4|G| bytes, BSS: 4Σ|g|", stamps),
    ("5.1", "BSS delivers as early as possible", bss_adds_nothing),
    ("3.5", "in lock-step no resynch is sent", lock_step),
    ("5.1", "… and deliveries are optimal: one group", lock_step_is_optimal(ONE_GROUP)),
    ("", "… several groups", lock_step_is_optimal(LOCK_STEP)),
    ("5.1", "the more synchronous, the nearer to optimal", nearer_to_optimal),
    ("3.5", "a timer decreases the number of resynchs", timer_saves("timer", 1)),
    ("", f"… one busy sender: at least {FEW} times", timer_saves("timer-one", FEW)),
    ("", "a longer timer delays deliveries", timer_costs),
    *(
        ("5.2", f"trade-off, {PANELS[panel].title}", trade_off(panel))
        for panel in ("groups", "size", "overlap", "senders", "interval")
    ),
)


def show_claims(found: Found) -> None:
    """What the paper says and what is measured; a claim whose points were not run is left out."""
    out = Console(highlight=False, width=130)
    table = Table(box=None, pad_edge=False)
    for head in ("section", "the paper", "measured", ""):
        table.add_column(head)
    for section, words, judge in CLAIMS:
        try:
            measured, holds = judge(found)
        except KeyError:
            continue
        table.add_row(section, words, measured, "yes" if holds else "[bold]no[/]")
    out.print(table)


def draw_all(found: Found, directory: Path) -> Path:
    """Control bytes and delay of every panel that was run, as SVG and PNG."""
    directory.mkdir(parents=True, exist_ok=True)
    with styled():
        for panel in dict.fromkeys(panel for panel, _, _ in found):
            its = PANELS[panel]
            drawn = new_figure(PAGE, PAGE * 0.4)
            for axes, (key, label) in zip(
                drawn.subplots(1, 2),
                (("control", "control (bytes a copy)"), ("delay", "delay (ms)")),
                strict=True,
            ):
                for index, protocol in enumerate(its.protocols):
                    values = [getattr(found[panel, v, protocol], key) for v in its.values]
                    draw_curve(axes, index, protocol, [*its.values], values)
                axes.set(ylim=(0, None), xlabel=its.label, ylabel=label)
            save(drawn, directory, panel)
    return directory


if __name__ == "__main__":
    sys.exit(main())
