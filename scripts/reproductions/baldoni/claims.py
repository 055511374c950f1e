"""What Baldoni et al. claim, and the judges: by 95 % confidence intervals over seeds."""

from itertools import pairwise
from math import inf, log, sqrt
from statistics import fmean, linear_regression
from typing import Any

from scripts.reproductions import Claim, Finding, curried
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
    OTHERS,
    PIGGYBACK,
    PLAIN,
    SAFE,
    SERVER,
    TO_ONE,
    TO_TWO,
    VARIED,
    WAIT,
    Found,
    Measured,
    Point,
)
from scripts.reproductions.intervals import Interval, all_of, is_less, less, shown

EXACT = 0.01  # how far from a formula a figure may be, relative to it
NEAR = 0.1  # how far from 1/L an exponent may be


def curve(found: Found, name: str) -> dict[int, Measured]:
    """A curve by the number of processes."""
    every = (p for p in found if p == Point(name, p.nodes))
    return {p.nodes: found[p] for p in sorted(every, key=lambda p: p.nodes)}


@curried
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


@curried
def grows_as_root(found: Found, levels: int) -> Finding:
    """Vectors grow as the L-th root of n."""
    sizes = curve(found, DAISIES[levels])
    logs = [log(n) for n in sizes]
    runs = zip(*(measured.control for measured in sizes.values()), strict=True)
    slopes = [linear_regression(logs, [log(c - FIXED) for c in run]).slope for run in runs]
    answer = Interval.of(slopes).within(1 / levels - NEAR, 1 / levels + NEAR)
    return Finding(f"vectors grow as n^({shown(slopes)})", answer)


def largest(found: Found) -> int:
    """The largest number of processes on the curves."""
    return max(curve(found, DAISIES[2]))


def less_than_others(found: Found) -> Finding:
    """In the largest system the daisy with the most levels attaches least."""
    n = largest(found)
    names = (DAISIES[LEVELS[-1]], *OTHERS)
    result: Finding = is_less("control", *(Point(name, n) for name in names))(found)
    return result


def across_takes_longer(found: Found) -> Finding:
    """Servers on the way take time."""
    ends = [found[Point(name, largest(found))] for name in DAISIES.values()]
    ratios = [[a / w for a, w in zip(e.across, e.within, strict=True)] for e in ends]
    answers = [Interval.of(ratio).within(1, inf) for ratio in ratios]
    return Finding(" ".join(f"{shown(ratio)} ×" for ratio in ratios), all_of(answers))


def more_levels_take_longer(found: Found) -> Finding:
    """Each level adds its broadcasts, up and down."""
    ends = [Point(name, largest(found)) for name in DAISIES.values()]
    answers = [less(found, "across", one, other) for one, other in pairwise(ends)]
    delays = ", ".join(shown(found[end].across) for end in ends)
    return Finding(f"{delays} ms", all_of(answers))


@curried
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


def similar_delays(found: Found) -> Finding:
    """No alternative takes less time than the daisy."""
    names = [*ALTERNATIVES, PLAIN, SAFE]
    answer = less(found, "delay", loaded(SAFE), *map(loaded, ALTERNATIVES))
    delays = ", ".join(f"{ALTERNATIVES.get(n, n)} {shown(found[loaded(n)].delay)}" for n in names)
    return Finding(f"{delays} ms", answer)


CLAIMS: tuple[Claim[Any], ...] = (
    *(
        Claim(("2.3", f"a. waiting takes longer than the daisy, {load}/s"),
              is_less("delay", loaded(SAFE, load), loaded(WAIT, load)))
        for load in LOADS
    ),
    Claim(("2.3", "a. … for arbitrary long periods: the more, the more load"),
          is_less("delay", loaded(WAIT, 100), loaded(WAIT, 300), loaded(WAIT, 1000))),
    *(
        Claim(("2.3", f"b. broadcasts are more copies, {n} processes"),
              is_less("copies", Point(SAFE, n), Point(ALL, n)))
        for n in BROADCAST_TO
    ),
    *(
        Claim(("2.3", f"b. and more datagrams, reports included, {n}"),
              is_less("datagrams", Point(SAFE, n), Point(ALL, n)))
        for n in BROADCAST_TO
    ),
    *(
        Claim(("2.3", f"c. piggybacking makes larger messages, {load}/s"),
              is_less("control", loaded(SAFE, load), loaded(PIGGYBACK, load)))
        for load in LOADS
    ),
    Claim(("5", "similar delays are needed in any case, 1000/s"), similar_delays),
    Claim(("3.3", "broadcasts: sender's, servers', recipients' groups"),
          is_exact("broadcasts", "formula")),
    Claim(("3.3", "one vector of the group's size"), is_exact("control", "vector")),
    *(
        Claim(("1", f"control grows as the root of n, {levels} levels"), grows_as_root(levels))
        for levels in LEVELS
    ),
    Claim(("1", "the daisy attaches less than protocols without groups"), less_than_others),
    Claim(("1", "messages that cross groups take longer"), across_takes_longer),
    Claim(("1", "the more levels, the longer"), more_levels_take_longer),
    Claim(("3.3", "groups of √n: least control in a copy"), root_is_best("control")),
    Claim(("3.3", "groups of √n: fewest copies"), root_is_best("copies")),
    Claim(("3.3", "groups of √n: least delay"), root_is_best("delay")),
    Claim(("3.4", "1. early: less delay across groups"),
          is_less("across", variant(EARLY), variant(PLAIN))),
    Claim(("3.4", "1. early: more control"), is_less("control", variant(PLAIN), variant(EARLY))),
    Claim(("3.4", "2. recipients: fewer copies"),
          is_less("copies", variant(TO_ONE), variant(SAFE))),
    Claim(("3.4", "2. recipients: more control, m²"),
          is_less("control", variant(SAFE), variant(TO_ONE))),
    Claim(("3.4", "2. recipients: longer across groups"),
          is_less("across", variant(PLAIN), variant(TO_ONE))),
    Claim(("3.4", "2. recipients: the longer, the more resilient"),
          is_less("across", variant(TO_ONE), variant(TO_TWO))),
    Claim(("3.4", "2. recipients: fewer datagrams"),
          is_less("datagrams", variant(TO_ONE), variant(SAFE))),
    Claim(("3.4", "3. server: fewer copies"), is_less("copies", variant(SERVER), variant(SAFE))),
    Claim(("3.4", "3. server: less control"), is_less("control", variant(SERVER), variant(SAFE))),
    Claim(("3.4", "3. server: one hop more within a group"),
          is_less("within", variant(PLAIN), variant(SERVER))),
    Claim(("3.4", "3. server: fewer datagrams"),
          is_less("datagrams", variant(SERVER), variant(SAFE))),
)  # fmt: skip
