"""How the analysis of Friedman & Manor is judged (sections 4, 6 and 7): by counts, which are exact."""

from math import ceil, log2
from statistics import fmean

from scripts.reproductions.claims import Answer, Finding, judges
from scripts.reproductions.friedman.crashes import Case
from scripts.reproductions.friedman.judges import Results, each_size
from scripts.reproductions.friedman.points import CLIQUE, CUBE, HYPERCAST, ODD_SIZE, OVERLAY
from scripts.reproductions.intervals import PAIRED, Interval, minus, ratio

SOUND, LOG, BELOW = "connectivity - 1", "log2 n, rounded,", "all that are fewer than log2 n"


@judges(
    "times that a message is sent, and its control bytes: Overlay and Timestamp, at every size",
    "exactly: Overlay at most n·log2 n and no bytes of control; Timestamp n - 1 and 4n bytes",
)
def table_1(results: Results) -> Finding:
    """The costs of Table 1."""

    def of(n: int) -> tuple[str, Answer]:
        sends = {
            p: ratio(results("copies", p, n, 0), results("multicasts", p, n, 0))
            for p in (OVERLAY, "timestamp")
        }
        control = {
            p: ratio(results("control_bytes", p, n, 0), results("copies", p, n, 0)) for p in sends
        }
        exact = {OVERLAY: 0.0, "timestamp": 4.0 * n}
        holds = max(sends[OVERLAY]) <= n * log2(n) and {*sends["timestamp"]} == {n - 1.0}
        words = f"{fmean(sends[OVERLAY]):,.0f} : {fmean(sends['timestamp']):,.0f}"
        return words, holds and all({*its} == {exact[p]} for p, its in control.items())

    return each_size(results, of)


def break_even(results: Results, n: int) -> float:
    """The data at which both protocols send as many bytes; bytes grow by the same for each of data."""
    lines = []
    for protocol in (OVERLAY, "timestamp"):
        none, full = (
            fmean(ratio(results("bytes", protocol, n, d), results("multicasts", protocol, n, d)))
            for d in (0, 1000)
        )
        lines.append((none, (full - none) / 1000))
    (base, slope), (other, other_slope) = lines
    return (other - base) / (slope - other_slope)


@judges(
    "the data at which both protocols send as many bytes, at every size, with n/(log2 n - 1)",
    "exactly, since bytes are counted: the measured number, in bytes, is not smaller",
)
def break_even_holds(results: Results) -> Finding:
    """Overlay sends fewer bytes whenever the data are fewer than the paper's formula."""

    def of(n: int) -> tuple[str, Answer]:
        measured, formula = break_even(results, n), n / (log2(n) - 1)
        return f"{measured:.0f} against {formula:.0f} bytes", measured >= formula

    return each_size(results, of)


@judges(
    "deliveries by the survivors if {which} of the neighbours of a process with the fewest crash, "
    "hypercube, at every size",
    "exactly: all that is due is delivered",
)
def survives(results: Results, which: str) -> Finding:
    """All survivors deliver everything."""

    def of(n: int) -> tuple[str, Answer]:
        tried = {
            case.crashes: its for case, its in results.crashes.items() if case[:2] == (CUBE, n)
        }
        connectivity = next(iter(tried.values())).connectivity
        crashes = {SOUND: connectivity - 1, LOG: round(log2(n)), BELOW: ceil(log2(n)) - 1}[which]
        its = tried[crashes]
        words = f"{crashes} of {its.least_degree}: {its.delivered:,} of {its.due:,}"
        return words, its.delivered == its.due

    return each_size(results, of)


@judges(
    f"neighbours of the last of {ODD_SIZE} processes in HyperCast's cube and in the paper's; "
    "deliveries by the survivors if one of its neighbours crashes",
    "exactly: one neighbour, and something is lost; in the paper's cube more, and nothing is lost",
)
def hypercast_is_weak(results: Results) -> Finding:
    """Where nodes are merely left out, one neighbour's crash cuts a process off."""
    weak, strong = (results.crashes[Case(overlay, ODD_SIZE, 1)] for overlay in (HYPERCAST, CUBE))
    words = (
        f"HyperCast {weak.least_degree}, {weak.delivered:,} of {weak.due:,}; "
        f"the paper's {strong.least_degree}, {strong.delivered:,} of {strong.due:,}"
    )
    fragile = weak.least_degree == 1 and weak.delivered < weak.due
    return Finding(words, fragile and strong.least_degree > 1 and strong.delivered == strong.due)


@judges(
    f"times that a message is sent among {ODD_SIZE} processes: flooding a clique > a hypercube",
    PAIRED,
)
def clique_is_dear(results: Results) -> Finding:
    """Flooding a clique takes the order of n² sends."""
    sends = {}
    for point in results.scale.overlays():
        its = results.found[point]
        sends[point.overlay] = ratio(its["copies"], its["multicasts"])
    words = f"{fmean(sends[CLIQUE]):,.0f} : {fmean(sends[CUBE]):,.0f}"
    return Finding(words, Interval.of(minus(sends[CLIQUE], sends[CUBE])).above(0))
