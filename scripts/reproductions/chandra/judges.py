"""The rules by which the claims of Chandra et al. are judged, and those of Fig. 3.

The paper prints no numbers with its figures but some percentages in its text, and says of the shapes of
its curves that they are constant, fall slightly, and so on. One tolerance stands for all these words:
a tenth, since a curve that moves by less looks level in a plot from 0 to 100 per cent of n².
"""

from collections.abc import Sequence
from itertools import pairwise
from math import log
from statistics import fmean, linear_regression

from scripts.reproductions.chandra.points import ALL
from scripts.reproductions.chandra.readings import KS, KS_PRIME, Curve, Curves, Seeds
from scripts.reproductions.claims import Answer, CannotJudgeError, Finding, all_of, judges
from scripts.reproductions.intervals import Interval, minus, ratio, shown

TENTH = 0.1
LEVEL = (1 - TENTH, 1 + TENTH)
EACH = "the 95 % interval over seeds of every point"
LEVEL_RULE = f"{EACH}, divided seed by seed by the mean of its curve, is within 0.9 to 1.1"


def below(values: Sequence[float], number: float) -> Answer:
    """Whether all of the interval of a mean is below a number."""
    return Interval.of([-value for value in values]).above(-number)


def highest(curve: Curve) -> Seeds:
    """The point with the highest mean."""
    return max(curve.values(), key=fmean)


@judges(
    "{whose} in per cent of n² at n = {n:g}, each of S1 to S4",
    "the 95 % interval over seeds is within {low:g} to {high:g}: {reason}",
)
def each_within(
    found: Curves, n: float, low: float, high: float, reason: str, whose: str = KS
) -> Finding:
    """Every setting is between two percentages."""
    values = {f"S{s}": found(3, s, whose)[n] for s in ALL}
    words = ", ".join(map(shown, values.values()))
    return Finding.of_each(
        words, {name: Interval.of(its).within(low, high) for name, its in values.items()}
    )


@judges(
    "{whose} in per cent of n² at n = {n:g}, the mean of S1 to S4",
    "the 95 % interval over seeds is within {low:g} to {high:g}: {reason}",
)
def mean_within(
    found: Curves, n: float, low: float, high: float, reason: str, whose: str = KS
) -> Finding:
    """One number stands for four settings, so it is their mean that is compared."""
    each = [found(3, s, whose)[n] for s in ALL]
    mean = [fmean(values) for values in zip(*each, strict=True)]
    words = f"{shown(mean)} (S1 to S4: {', '.join(shown(its) for its in each)})"
    return Finding(words, Interval.of(mean).within(low, high))


@judges(
    "KS in per cent of n², from each n to the next, S1 to S4",
    "the 95 % interval over seeds of every difference is on one side of 0",
)
def falls_with_n(found: Curves) -> Finding:
    """KS takes a smaller part of n² the more processes there are."""
    curves = {f"S{s}": found(3, s) for s in ALL}
    ends = {name: [curve[min(curve)], curve[max(curve)]] for name, curve in curves.items()}
    words = ", ".join(f"{fmean(a):.3g} → {fmean(b):.2g}" for a, b in ends.values())
    steps = {name: pairwise([curve[n] for n in sorted(curve)]) for name, curve in curves.items()}
    answers = {
        name: all_of([Interval.of(minus(a, b)).above(0) for a, b in its])
        for name, its in steps.items()
    }
    return Finding.of_each(words, answers)


@judges(
    "the exponent b of KS's integers ~ n^b, by least squares over all n, S1 to S4",
    "its 95 % interval over seeds is within 0.75 to 1.25: no further from a line than a quarter of "
    "the way to RST's n²",
)
def almost_linear(found: Curves) -> Finding:
    """The integers of a message grow about as the number of processes."""
    exponents = {}
    for s in ALL:
        curve = found(3, s)
        if len(curve) < 3:
            raise CannotJudgeError("a slope takes three sizes")
        sizes = [log(n) for n in curve]
        seeds = zip(*curve.values(), strict=True)
        exponents[f"S{s}"] = [
            linear_regression(
                sizes, [log(p * n * n) for n, p in zip(curve, each, strict=True)]
            ).slope
            for each in seeds
        ]
    words = ", ".join(map(shown, exponents.values()))
    return Finding.of_each(
        words, {name: Interval.of(its).within(0.75, 1.25) for name, its in exponents.items()}
    )


@judges(
    "S1, S3 and S4 with each other, KS in per cent of n², at every n",
    f"{EACH}, divided seed by seed by the mean of the three, is within 0.9 to 1.1",
)
def alike(found: Curves) -> Finding:
    """Settings with few and with many multicasts are alike."""
    curves = {f"S{s}": found(3, s) for s in (1, 3, 4)}
    answers, most = {}, 0.0
    for n in curves["S1"]:
        means = tuple(fmean(seed) for seed in zip(*(c[n] for c in curves.values()), strict=True))
        shares = [ratio(curve[n], means) for curve in curves.values()]
        most = max(most, *(abs(fmean(share) - 1) for share in shares))
        answers[f"n = {n:g}"] = all_of([Interval.of(share).within(*LEVEL) for share in shares])
    return Finding.of_each(f"at most {most:.0%} from their mean", answers)


@judges(
    "the n from which on KS takes less than KS', S{setting}, on a line between the sizes that were run",
    "its 95 % interval over seeds is within {paper:g} ± 5, half of the paper's steps of n",
)
def threshold(found: Curves, setting: int, paper: float) -> Finding:
    """KS takes less than KS' from about this number of processes on."""
    ks, prime = found(3, setting), found(3, setting, KS_PRIME)
    sizes = sorted(ks)
    if sizes[0] > paper - 5 or sizes[-1] < paper + 5:
        raise CannotJudgeError(f"no n run on both sides of {paper:g} ± 5")
    leads = [minus(ks[n], prime[n]) for n in sizes]
    crossings = [crossing(sizes, lead) for lead in zip(*leads, strict=True)]
    if None not in crossings:
        values = [value for value in crossings if value is not None]
        return Finding(f"n = {shown(values)}", Interval.of(values).within(paper - 5, paper + 5))
    signs = {Interval.of(lead).above(0) for lead in leads}
    return Finding(f"none from {sizes[0]:g} to {sizes[-1]:g}", False if len(signs) == 1 else None)


def crossing(sizes: Sequence[float], lead: Sequence[float]) -> float | None:
    """Where a lead above 0 is lost, on the line between two sizes."""
    for (n, before), (m, after) in pairwise(zip(sizes, lead, strict=True)):
        if after < 0 <= before:
            return n + before / (before - after) * (m - n)
    return None


@judges(
    "KS' with KS in Fig. {figure}, S{settings}, at {where}",
    "paired by seed: the 95 % interval of the difference is on one side of 0 at every point",
)
def prime_is_less(
    found: Curves,
    figure: int,
    settings: tuple[int, ...],
    where: str = "every point",
    x: tuple[float, ...] = (),
    more: bool = False,
) -> Finding:
    """KS' takes less than KS at some points, or more."""
    answers, words = {}, []
    for s in settings:
        ks, prime = found(figure, s), found(figure, s, KS_PRIME)
        places = [place for place in ks if not x or place in x]
        if not places:
            raise LookupError(f"Fig. {figure} at {x}")
        ahead = [minus(ks[place], prime[place]) for place in places]
        ahead = [tuple(-value for value in its) for its in ahead] if more else ahead
        ratios = [fmean(ratio(prime[place], ks[place])) for place in places]
        answers[f"S{s}"] = all_of([Interval.of(its).above(0) for its in ahead])
        words.append(f"{min(ratios):.2f} to {max(ratios):.2f}")
    return Finding.of_each(f"KS'/KS {', '.join(words)}", answers)


@judges(
    "|KS' - KS| in points of per cent, at the largest n and at the smallest, S1 to S4",
    "the 95 % interval over seeds of the difference is on one side of 0",
)
def closer_when_large(found: Curves) -> Finding:
    """KS and KS' are closer together for many processes than for few."""
    answers, words = {}, []
    for s in ALL:
        ks, prime = found(3, s), found(3, s, KS_PRIME)
        if len(ks) < 2:
            raise CannotJudgeError("only one n was run")
        few, many = (tuple(map(abs, minus(ks[n], prime[n]))) for n in (min(ks), max(ks)))
        answers[f"S{s}"] = Interval.of(minus(few, many)).above(0)
        words.append(f"{fmean(few):.2g} → {fmean(many):.2g}")
    return Finding.of_each(", ".join(words), answers)
