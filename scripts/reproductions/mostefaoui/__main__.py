"""Mostefaoui & Raynal 1993, section 5: small stamps and resynchs against large stamps and no waiting.

The paper has no experiments. It argues that there is a trade-off between the earliest possible delivery
(BSS, with a vector for each group on every message) and the smallest stamps (its own protocol, with an
integer for each group, but resynchs that messages may have to wait for), and that the more synchronous
senders are, the better its own protocol does. All of this is measured here, side by side.

The third point of its trade-off, one integer for all groups and still more resynchs, is run as well.

Assumptions: 24 processes in 6 groups of 6, channels with exponential delays of 5 ms on average, and
Poisson senders, all members of groups, with 50 messages a second each, each to one of its sender's
groups; one of these is varied at a time. "Control" is the bytes of stamps and of whole resynchs, with
their header of 32 bytes, for each copy of a message. "Added" is how much later a message is delivered
than at the earliest moment that causal order allows, as the oracle finds it. Channels are FIFO without
any time between messages that would overtake; panel "gap" shows what the millisecond of Chandra et al.
does to M–R, which waits for messages that BSS need not wait for. Panel "multicast" is on links of up to
1 ms between 24 nodes.

Claims are judged by 95 % confidence intervals over seeds; ``--duration-ms 2000`` runs for five times as
long as the default.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from scripts import reproductions as shared
from scripts.reproductions.intervals import draw, shown
from scripts.reproductions.mostefaoui.claims import CLAIMS
from scripts.reproductions.mostefaoui.points import PANELS, Found, experiment, measured


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    add = parser.add_argument
    add("--panels", nargs="+", choices=PANELS, default=[*PANELS], metavar="NAME")
    add("--duration-ms", type=float, default=400.0, help="how long senders send")
    add("--seeds", type=int, default=10, help="of each point, at least 2")


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
    found = {key: measured(each) for key, each in rows.items()}
    print(f"{options.duration_ms:g} ms of sending, {options.seeds} seeds a point")
    for panel in panels:
        show(panel, found)
    shared.show_claims(("section", "the paper"), CLAIMS, found)
    print(f"figures: {draw_all(found, options.runs / 'mostefaoui')}")


SHOWN = (
    ("stamp, bytes a copy", "stamp"),
    ("control, bytes a copy", "control"),
    ("resynchs a copy", "resynchs"),
    ("delay, ms", "delay"),
    ("of this added, ms", "added"),
    ("held messages", "held"),
    ("memory, bytes", "memory"),
    ("links crossed", "hops"),
)


def show(panel: str, found: Found) -> None:
    """Show a panel as a table."""
    its = PANELS[panel]
    rows = [
        [
            "" if index else label,
            protocol,
            *(shown(getattr(found[panel, value, protocol], key)) for value in its.values),
        ]
        for label, key in SHOWN
        for index, protocol in enumerate(its.protocols)
    ]
    shared.show_table((its.label, "", *its.values), rows, words=2, title=its.title)


def draw_all(found: Found, directory: Path) -> Path:
    """Plot control bytes and delay of every panel that was run."""
    drawn = (("control", "control (bytes a copy)"), ("delay", "delay (ms)"))
    for panel in dict.fromkeys(panel for panel, _, _ in found):
        its = PANELS[panel]
        with shared.plot(directory, panel, 0.4, 1, 2) as panels:
            for axes, (key, label) in zip(panels, drawn, strict=True):
                for index, protocol in enumerate(its.protocols):
                    values = [getattr(found[panel, v, protocol], key) for v in its.values]
                    draw(axes, index, protocol, [*its.values], values)
                axes.set(ylim=(0, None), xlabel=its.label, ylabel=label)
    return directory


if __name__ == "__main__":
    shared.main("mostefaoui", __doc__, add_options, reproduce)
