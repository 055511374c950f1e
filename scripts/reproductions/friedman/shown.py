"""The tables and plots of the reproduction of Friedman & Manor."""

from collections.abc import Mapping
from functools import partial
from math import log2
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from scripts.reproductions.chapter import Cells, Plot, Table
from scripts.reproductions.claims import Judged, tally
from scripts.reproductions.drawing import drawn
from scripts.reproductions.friedman.analysis import break_even
from scripts.reproductions.friedman.crashes import Case, Survived
from scripts.reproductions.friedman.emulated import mark
from scripts.reproductions.friedman.judges import Results
from scripts.reproductions.friedman.points import (
    DATA,
    LABELS,
    NETWORK,
    OVERLAY,
    PROTOCOLS,
    Found,
    Point,
    Scale,
)
from scripts.reproductions.intervals import cell, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Panels(NamedTuple):
    """Three of the paper's figures, one for each size of data: what they show."""

    first: int  # of the paper's figures
    title: str
    keys: tuple[tuple[str, str], ...]  # figure of a run, label


FIGURE_PANELS = (
    Panels(3, "delay", (("delay_ms_mean", "mean delay (ms)"), ("delay_ms_max", "max delay (ms)"))),
    Panels(6, "messages", (("messages", "messages"), ("bytes", "bytes"))),
    Panels(9, "hops", (("hops", "hops"),)),
    Panels(12, "delivery queue", (("delivery_queue_mean", "mean queue (messages)"),
                                  ("delivery_queue_max", "max queue (messages)"))),
    Panels(15, "network load", (("network_load_mean", "mean load (packets)"),
                                ("network_load_bytes_mean", "mean load (bytes)"),
                                ("link_queue_max", "longest queue (packets)"),
                                ("link_queue_bytes_max", "longest queue (bytes)"))),
)  # fmt: skip
WORDS = {key: label for panels in FIGURE_PANELS for key, label in panels.keys}


def table(key: str, label: str, found: Found, scale: Scale) -> Table:
    """A figure of all runs, over the size."""
    rows: list[Cells] = [
        [
            LABELS[protocol],
            str(data),
            *(cell(_at(found, scale, protocol, n, data, key)) for n in scale.sizes),
        ]
        for data in DATA
        for protocol in PROTOCOLS
    ]
    heads = ("nodes", "data", *map(str, scale.sizes))
    title = f"{label[0].upper()}{label[1:]}, over nodes and bytes of data"
    return Table(key.replace("_", "-"), title, heads, rows, words=2)


def _at(
    found: Found, scale: Scale, protocol: str, n: int, data: int, key: str
) -> tuple[float, ...]:
    return found[Point(protocol, n, data, scale.duration_ms)][key]


def readings(verdicts: Mapping[str, tuple[Judged, ...]]) -> Table:
    """The verdicts with Timestamp's multicast along a tree, and as n - 1 copies."""
    rows: list[Cells] = [
        [claims[0].where, claims[0].says, *(claim.verdict for claim in claims)]
        for claims in zip(*verdicts.values(), strict=True)
    ]
    counts = [tally(its) for its in verdicts.values()]
    rows += [["", f"in all: {word}", *(str(count[word]) for count in counts)] for word in counts[0]]
    heads = ("where", "the paper", *verdicts)
    return Table("multicast", "Verdicts by how Timestamp's multicast travels", heads, rows, words=2)


def costs(results: Results) -> Table:
    """Table 1 as measured, and the size of data at which both send as many bytes."""
    rows: list[Cells] = []
    for n in results.scale.sizes:
        sends = [
            fmean(results("copies", p, n, 0)) / fmean(results("multicasts", p, n, 0))
            for p in (OVERLAY, NETWORK)
        ]
        formula = n / (log2(n) - 1)
        numbers = (*sends, n * log2(n), break_even(results, n), formula, 4 * formula)
        rows.append([str(n), *(f"{number:,.0f}" for number in numbers)])
    heads = ("nodes", "Overlay's sends", "Timestamp's", "n log n", "as many bytes at d =",
             "n/(log n - 1)", "the same in entries of 4 bytes")  # fmt: skip
    title = "Sends of a message, and the data at which both protocols send as many bytes"
    return Table("costs", title, heads, rows)


def crash_table(crashes: Mapping[Case, Survived]) -> Table:
    """What is delivered after crashes around a process with the fewest neighbours."""
    rows: list[Cells] = [
        [overlay, str(n), f"{log2(n):.1f}", str(its.connectivity), str(killed),
         f"{its.delivered:,} of {its.due:,}"]
        for (overlay, n, killed), its in crashes.items()
    ]  # fmt: skip
    heads = ("overlay", "nodes", "log n", "connectivity", "crashes", "deliveries")
    return Table("crashes", "Crashes of neighbours of a process with the fewest", heads, rows)


def scan(found: Found, scale: Scale) -> Table:
    """Delays and queues for other lengths of sending."""
    sizes = sorted({point.nodes for point in scale.scanned()})
    wanted = [
        *((OVERLAY, sizes[0], key) for key in ("delay_ms_mean",)),
        *((NETWORK, n, key) for key in ("delay_ms_mean", "delivery_queue_mean", "delivery_queue_max")
          for n in sizes),
    ]  # fmt: skip
    rows: list[Cells] = [
        [f"{LABELS[protocol]}, {n} nodes", WORDS[key],
         *(cell(found[Point(protocol, n, 0, ms)][key]) for ms in scale.durations)]
        for protocol, n, key in wanted
    ]  # fmt: skip
    heads = ("senders send for", "", *(f"{ms:g} ms" for ms in scale.durations))
    return Table("durations", "Without data, for other lengths of sending", heads, rows, words=2)


def edges(found: Found, scale: Scale) -> Table:
    """Delays, bytes and loads for other edge probabilities."""
    keys = ("delay_ms_mean", "hops", "network_load_bytes_mean")
    points = scale.edges()
    rows: list[Cells] = [
        [LABELS[protocol], str(data), WORDS[key],
         *(cell(found[point][key]) for point in points
           if (point.protocol, point.data) == (protocol, data))]
        for key in keys
        for data in DATA
        for protocol in (OVERLAY, NETWORK)
    ]  # fmt: skip
    heads = ("edge probability", "data", "", *(f"{p:g}" for p in scale.probabilities))
    return Table(
        "edges", f"Other edge probabilities, {points[0].nodes} nodes", heads, rows, words=3
    )


def plot(panels: Panels, index: int, found: Found, scale: Scale) -> Plot:
    """One of the paper's figures, over the system size."""
    number, data = panels.first + index, DATA[index]
    rows, columns = (2, 2) if len(panels.keys) > 2 else (1, len(panels.keys))
    caption = f"Fig. {number}: {panels.title} over the system size, {data} bytes of data."
    painter = partial(_draw, panels=panels, data=data, found=found, scale=scale)
    return drawn(f"fig-{number}", caption, 0.38 * rows, rows, columns, painter)


def _draw(axes: "list[Axes]", panels: Panels, data: int, found: Found, scale: Scale) -> None:
    for each, (key, label) in zip(axes, panels.keys, strict=True):
        for index, protocol in enumerate(PROTOCOLS):
            values = [_at(found, scale, protocol, n, data, key) for n in scale.sizes]
            draw(each, index, LABELS[protocol], [*scale.sizes], values)
        if scale.emulated():
            mark(each, found, scale, data, key)
        each.set(xlabel="system size (nodes)", ylabel=label)
        if all(fmean(its[key]) > 0 for point, its in found.items() if point.data == data):
            each.set_yscale("log")
        else:
            each.set_ylim(bottom=0)


def values(results: Results) -> dict[str, str]:
    """The numbers that the text names."""
    small, large = results.scale.sizes[0], results.scale.sizes[-1]
    return {
        "small": str(small),
        "large": str(large),
        "even_small": f"{break_even(results, small):.0f}",
        "even_large": f"{break_even(results, large):.0f}",
    }
