"""What Baldoni et al. claim, and the rules by which it is judged."""

from collections.abc import Mapping
from itertools import pairwise
from math import inf, log, sqrt
from statistics import fmean, linear_regression
from typing import Any

from scripts.reproductions.baldoni.domains import GROUPED_ON, Grouped
from scripts.reproductions.baldoni.points import (
    ALL,
    ALTERNATIVES,
    BROADCAST_TO,
    DAISIES,
    EARLY,
    FIXED,
    GROUP_SIZES,
    LEVELS,
    LOADED,
    LOADS,
    MATRIX_FITS,
    OTHERS,
    PIGGYBACK,
    PLAIN,
    SAFE,
    SERVER,
    TO_ONE,
    TO_TWO,
    VARIED,
    WAIT,
    Measured,
    Point,
    fits,
)
from scripts.reproductions.claims import CannotJudgeError, Claim, Finding, all_of, judges
from scripts.reproductions.intervals import PAIRED, Interval, is_less, less, ratio, shown

Found = Mapping[Any, Any]  # measured at each Point and Grouped
EXACT = 0.01  # a formula is exact; a message that is sent again or is not counted is less than that
NEAR = 0.1  # of an exponent: groups are whole numbers near n^(1/L), 2 to 4 for 8 and 16 processes


def curve(found: Found, name: str) -> dict[int, Measured]:
    """A curve by the number of processes."""
    every = (p for p in found if isinstance(p, Point) and p == Point(name, p.nodes))
    sizes = {p.nodes: found[p] for p in sorted(every, key=lambda p: p.nodes)}
    if not sizes:
        raise LookupError(f"the curve of {name}")
    return sizes


@judges(
    "{figure} a message, divided by the formula, at every size on every number of levels",
    f"the 95 % interval of the ratio is within {EXACT:.0%} of 1, since a formula of counts is exact",
)
def is_exact(found: Found, figure: str, predicted: str) -> Finding:
    """A figure is what the formula says, with any number of levels and processes."""
    intervals = [
        Interval.of([a / b for a, b in zip(getattr(m, figure), getattr(m, predicted), strict=True)])
        for name in DAISIES.values()
        for m in curve(found, name).values()
    ]
    holds = all_of([interval.within(1 - EXACT, 1 + EXACT) for interval in intervals])
    low, high = min(i.low for i in intervals), max(i.high for i in intervals)
    return Finding(f"{low:.3f} to {high:.3f} times the formula, {len(intervals)} points", holds)


@judges(
    "the slope of log(vector) over log(n), {levels} levels, against 1/{levels}",
    f"a straight line for each seed; the 95 % interval of the slope is within {NEAR:g} of 1/L, since "
    "groups are whole numbers near n^(1/L)",
)
def grows_as_root(found: Found, levels: int) -> Finding:
    """Vectors grow as the L-th root of n."""
    sizes = curve(found, DAISIES[levels])
    if len(sizes) < 3:
        raise CannotJudgeError("through two points goes any power of n")
    logs = [log(n) for n in sizes]
    runs = zip(*(measured.control for measured in sizes.values()), strict=True)
    slopes = [linear_regression(logs, [log(c - FIXED) for c in run]).slope for run in runs]
    answer = Interval.of(slopes).within(1 / levels - NEAR, 1 / levels + NEAR)
    return Finding(f"vectors grow as n^({shown(slopes)})", answer)


def largest(found: Found) -> int:
    """The largest number of processes on the curves."""
    return max(curve(found, DAISIES[2]))


@judges(
    "control bytes a copy in the largest system: 4 levels < Timestamp, KS, and RST with up to "
    f"{MATRIX_FITS} processes, since larger matrices do not fit into a datagram",
    PAIRED,
)
def less_than_others(found: Found) -> Finding:
    """In the largest system the daisy with the most levels attaches least."""
    n = largest(found)
    names = (DAISIES[LEVELS[-1]], *(name for name in OTHERS if fits(name, n)))
    return is_less("control", *(Point(name, n) for name in names))(found)


@judges(
    "delay across groups divided by delay within, in the largest system, 2, 3 and 4 levels",
    "the 95 % interval of the ratio is above 1",
)
def across_takes_longer(found: Found) -> Finding:
    """Servers on the way take time."""
    ends = [found[Point(name, largest(found))] for name in DAISIES.values()]
    ratios = [ratio(end.across, end.within) for end in ends]
    answers = [Interval.of(times).within(1, inf) for times in ratios]
    return Finding(" ".join(f"{shown(times)} ×" for times in ratios), all_of(answers))


@judges("delay across groups in the largest system: 2 < 3 < 4 levels", PAIRED)
def more_levels_take_longer(found: Found) -> Finding:
    """Each level adds its broadcasts, up and down."""
    ends = [Point(name, largest(found)) for name in DAISIES.values()]
    answers = [less(found, "across", one, other) for one, other in pairwise(ends)]
    delays = ", ".join(shown(found[end].across) for end in ends)
    return Finding(f"{delays} ms", all_of(answers))


@judges(f"{{figure}}: groups of 8 < groups of any other size, {VARIED} processes", PAIRED)
def root_is_best(found: Found, figure: str) -> Finding:
    """With groups of the root of n, a figure is less than with any other size."""
    root = Point(SAFE, VARIED, group_size=round(sqrt(VARIED)))
    others = [Point(SAFE, VARIED, group_size=m) for m in GROUP_SIZES if m != root.group_size]
    means = {p.group_size: getattr(found[p], figure) for p in (*others, root)}
    best = min(means, key=lambda m: fmean(means[m]))
    measured = f"{shown(means[root.group_size])}; least in groups of {best}: {shown(means[best])}"
    return Finding(measured, less(found, figure, root, *others))


def variant(name: str) -> Point:
    """A variant of the daisy."""
    return Point(name, VARIED)


def loaded(name: str, load: int = LOADS[-1]) -> Point:
    """A protocol under load."""
    return Point(name, LOADED, load)


@judges(f"delay of the daisy < delay of every alternative, {LOADS[-1]} messages a second", PAIRED)
def similar_delays(found: Found) -> Finding:
    """No alternative takes less time than the daisy."""
    names = [*ALTERNATIVES, PLAIN, SAFE]
    answer = less(found, "delay", loaded(SAFE), *map(loaded, ALTERNATIVES))
    delays = ", ".join(f"{ALTERNATIVES.get(n, n)} {shown(found[loaded(n)].delay)}" for n in names)
    return Finding(f"{delays} ms", answer)


CLAIMS: tuple[Claim[Any], ...] = (
    *(
        Claim("§ 2.3", f"a. waiting takes longer than the daisy, {load}/s",
              is_less("delay", loaded(SAFE, load), loaded(WAIT, load)))
        for load in LOADS
    ),
    Claim("§ 2.3", "a. … for arbitrary long periods: the more, the more load",
          is_less("delay", loaded(WAIT, 100), loaded(WAIT, 300), loaded(WAIT, 1000))),
    *(
        Claim("§ 2.3", f"b. broadcasts are more copies, {n} processes",
              is_less("copies", Point(SAFE, n), Point(ALL, n)))
        for n in BROADCAST_TO
    ),
    *(
        Claim("§ 2.3", f"b. and more datagrams, reports included, {n}",
              is_less("datagrams", Point(SAFE, n), Point(ALL, n)))
        for n in BROADCAST_TO
    ),
    *(
        Claim("§ 2.3", f"c. piggybacking makes larger messages, {load}/s",
              is_less("control", loaded(SAFE, load), loaded(PIGGYBACK, load)))
        for load in LOADS
    ),
    Claim("§ 5", "similar delays are needed in any case, 1000/s", similar_delays()),
    Claim("§ 3.3", "broadcasts: sender's, servers', recipients' groups",
          is_exact("broadcasts", "formula")),
    Claim("§ 3.3", "one vector of the group's size", is_exact("control", "vector")),
    *(
        Claim("§ 1", f"control grows as the root of n, {levels} levels", grows_as_root(levels))
        for levels in LEVELS
    ),
    Claim("§ 1", "the daisy attaches less than protocols without groups", less_than_others()),
    Claim("§ 1", "messages that cross groups take longer", across_takes_longer()),
    Claim("§ 1", "the more levels, the longer", more_levels_take_longer()),
    Claim("§ 3.3", "groups of √n: least control in a copy", root_is_best("control")),
    Claim("§ 3.3", "groups of √n: fewest copies", root_is_best("copies")),
    Claim("§ 3.3", "groups of √n: least delay", root_is_best("delay")),
    Claim("§ 3.4", "1. early: less delay across groups",
          is_less("across", variant(EARLY), variant(PLAIN))),
    Claim("§ 3.4", "1. early: more control", is_less("control", variant(PLAIN), variant(EARLY))),
    Claim("§ 3.4", "2. recipients: fewer copies",
          is_less("copies", variant(TO_ONE), variant(SAFE))),
    Claim("§ 3.4", "2. recipients: more control, m²",
          is_less("control", variant(SAFE), variant(TO_ONE))),
    Claim("§ 3.4", "2. recipients: longer across groups",
          is_less("across", variant(PLAIN), variant(TO_ONE))),
    Claim("§ 3.4", "2. recipients: the longer, the more resilient",
          is_less("across", variant(TO_ONE), variant(TO_TWO))),
    Claim("§ 3.4", "2. recipients: fewer datagrams",
          is_less("datagrams", variant(TO_ONE), variant(SAFE))),
    Claim("§ 3.4", "3. server: fewer copies", is_less("copies", variant(SERVER), variant(SAFE))),
    Claim("§ 3.4", "3. server: less control", is_less("control", variant(SERVER), variant(SAFE))),
    Claim("§ 3.4", "3. server: one hop more within a group",
          is_less("within", variant(PLAIN), variant(SERVER))),
    Claim("§ 3.4", "3. server: fewer datagrams",
          is_less("datagrams", variant(SERVER), variant(SAFE))),
    *(
        Claim("footnote 5", f"groups by domain: {words}, {levels} levels",
              is_less(figure, Grouped("domains", levels), Grouped("numbers", levels)))
        for levels in GROUPED_ON
        for figure, words in (("transit", "less on transit links"), ("delay", "less delay"))
    ),
)  # fmt: skip
