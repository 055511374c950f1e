"""What Gidenstam et al. claim, and the rules by which it is judged."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from scripts.reproductions.claims import (
    CannotJudgeError,
    Claim,
    Finding,
    all_of,
    judges,
)
from scripts.reproductions.gidenstam import analysis
from scripts.reproductions.gidenstam.points import (
    AGES,
    ALL,
    CLUSTERS,
    COVERAGE,
    COVERED,
    FAILED,
    FEW,
    FIG4,
    FIG5,
    FIG5C,
    HEAVY,
    HOPS,
    HOSTS,
    KEEP,
    NONE,
    ONCE,
    PACKETS,
    PLAIN,
    R1,
    R4,
    SOME,
    TARGETS,
    TRIED,
    Buffers,
    Point,
    Seeds,
    curve,
)
from scripts.reproductions.gidenstam.tickets import SHARES, alive_in, available, light, takes
from scripts.reproductions.intervals import PAIRED, Interval, half_width, ratio, shown

FANOUT = 4
Found = Mapping[Any, Any]  # measured at each Point, each Churn, with each kind of Buffers


def buffer_bound(expected: float) -> float:
    """Theorem 5.1: how often an event may be absent from a buffer, where npT events are expected."""
    return math.pow(math.e / 4, expected)


def recovery_bound(targets: float) -> float:
    """Theorem 5.2: the least percentage of recoveries from k targets that succeed."""
    return 100 * (1 - math.pow(math.e / 4, targets / 2))


@judges(
    "how often an event is absent from a buffer after T rounds, against (e/4)^npT: {buffers}",
    "the 95 % interval over seeds is below the bound; there is no tolerance",
)
def buffers_suffice(found: Found, buffers: Buffers) -> Finding:
    """Theorem 5.1: events are absent more rarely than the bound."""
    absent, bound = found[buffers], buffer_bound(buffers.expected)
    words = f"{shown(absent)}; the bound is {bound:.3g}"
    return Finding(words, Interval.of([bound - share for share in absent]).above(0))


@judges(
    "per cent of the recoveries from {targets} targets that succeed, where p_f = k/2n have failed "
    "and 20 % of the packets are lost, against 1 - (e/4)^(k/2)",
    "the 95 % interval over seeds is above the bound; there is no tolerance",
)
def recoveries_succeed(found: Found, targets: int) -> Finding:
    """Theorem 5.2: a larger percentage of recoveries succeeds than the bound."""
    its, bound = found[Point(FAILED, R4, targets)], recovery_bound(targets)
    success = known(its.success)
    words = f"{shown(success)} % of {sum(its.tried):,.0f}; the bound is {bound:.0f} %"
    return Finding(words, Interval.of(success).above(bound))


def known(values: Sequence[float]) -> list[float]:
    """The seeds for which there is a number; two at least."""
    numbers = [value for value in values if not math.isnan(value)]
    if len(numbers) < 2:
        raise CannotJudgeError("too few numbers for an interval")
    return numbers


def ends(found: Found, part: str, label: str, key: str) -> tuple[Seeds, Seeds]:
    """A curve at its beginning, with 25 processes in Fig. 4, and at its end."""
    places, values = curve(found, part, label, key)
    if part == FIG4 and 25 not in places:
        raise LookupError(f"{part} with 25 processes")
    first = places.index(25) if part == FIG4 else 0
    if first + 1 == len(places):
        raise CannotJudgeError(f"one place on the curve of {label} shows no change")
    return values[first], values[-1]


def misfit(places: list[float], values: Sequence[float], scale: Callable[[Any], Any]) -> float:
    """What a straight line through a curve over this scale leaves unexplained."""
    x, y = scale(np.array(places)), np.array(values)
    return float(
        ((np.polyval(np.polyfit(x, y, 1), x) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    )


@judges(
    "{key} by the number of processes, {label}: what a straight line over ln n leaves unexplained, "
    "and one over n (1 - R²)",
    "paired by seed: the 95 % interval of the difference is on one side of 0",
)
def shape(found: Found, label: str, key: str, logarithmic: bool) -> Finding:
    """A logarithm fits the curve better than a line does, or the other way round."""
    places, values = curve(found, FIG4, label, key)
    if len(places) < 3:
        raise CannotJudgeError("two places, through which all curves go")
    log, line = (
        [misfit(places, seed, scale) for seed in zip(*values, strict=True)]
        for scale in (np.log, lambda x: x)
    )
    better = [b - a if logarithmic else a - b for a, b in zip(log, line, strict=True)]
    words = (
        f"{fmean(values[0]):,.3g} → {fmean(values[-1]):,.3g}; R² "
        f"{1 - fmean(log):.3f} over ln n, {1 - fmean(line):.3f} over n (± {half_width(better):.3f})"
    )
    return Finding(words, Interval.of(better).above(0))


@judges(
    "{key} at the end of the curve of {label} in {part}, divided by that at its beginning",
    "paired by seed: the 95 % interval of the ratio is within {within}; {reason}",
)
def change(
    found: Found,
    label: str,
    key: str,
    within: tuple[float, float],
    reason: str,
    part: str = FIG4,
) -> Finding:
    """The factor between the end and the beginning of a curve is within limits."""
    first, last = ends(found, part, label, key)
    factors = ratio(last, first)
    words = f"{fmean(first):,.4g} → {fmean(last):,.4g} (× {shown(factors)})"
    return Finding(words, Interval.of(factors).within(*within))


@judges(
    "per cent of the deliveries that are lost with {scheme}, at every load of Fig. 5",
    "the 95 % interval over seeds is below 0.5 %, where without the causality layer it is some 2 %: "
    '"almost no" is read as less than a quarter of that',
)
def nearly_all(found: Found, scheme: str) -> Finding:
    """At most one in two hundred deliveries is missing, at any load."""
    losses = curve(found, FIG5, scheme, "lost")[1]
    most = max(losses, key=fmean)
    answers = [Interval.of(lost).within(0, 0.5) for lost in losses]
    return Finding(f"at most {shown(most)} % lost", all_of(answers))


@judges("recovery attempts a round in {part}, {label}: least load < most load", PAIRED)
def rising(found: Found, part: str, label: str) -> Finding:
    """There are more attempts under the highest load than under the lowest."""
    low, high = ends(found, part, label, "attempts")
    more = [b - a for a, b in zip(low, high, strict=True)]
    return Finding(f"{shown(low)} → {shown(high)} a round", Interval.of(more).above(0))


@judges(
    "per cent of the recoveries that succeed at p = 0.05 < those at p = 0.5, {label}",
    f"{PAIRED}; seeds with no recovery at either load do not count",
)
def fewer(found: Found, label: str) -> Finding:
    """Recoveries fail more often under the lowest load."""
    tried, rates = (curve(found, FIG5C, label, key)[1] for key in ("tried", "success"))
    if not all(map(sum, tried)):
        raise CannotJudgeError(f"nothing to recover in {TRIED * len(rates[0]):,} events")
    low, high = known(rates[0]), known(rates[-1])
    words = f"{shown(low)} % of {sum(tried[0]):,.0f} → {shown(high)} % of {sum(tried[-1]):,.0f}"
    more = [b - a for a, b in zip(rates[0], rates[-1], strict=True)]
    return Finding(words, Interval.of(known(more)).above(0))


@judges(
    "per cent of the recoveries that succeed at p = 0.5, {label}",
    "the 95 % interval over seeds is above 90 %: one of four answers nearly always where 0.2 % of the "
    "messages fail, and a tenth is left for replies that come too late",
)
def as_predicted(found: Found, label: str) -> Finding:
    """Recoveries hardly ever fail under the highest load."""
    tried, rates = (curve(found, FIG5C, label, key)[1][-1] for key in ("tried", "success"))
    if not sum(tried):
        raise CannotJudgeError(f"nothing to recover in {TRIED * len(rates):,} events")
    last = known(rates)
    return Finding(f"{shown(last)} % of {sum(tried):,.0f}", Interval.of(last).above(90))


@judges(
    "per cent of the deliveries that are lost if 20 % of the packets are, all loads together: R4 "
    "against a tenth of no recovery",
    "paired by seed: the 95 % interval of the difference is on one side of 0",
)
def tenth(found: Found) -> Finding:
    """R4 loses at most a tenth of what is lost without recovery, all loads together."""
    none, r4 = (
        [fmean(seed) for seed in zip(*curve(found, HEAVY, scheme, "lost")[1], strict=True)]
        for scheme in (NONE, R4)
    )
    spare = [a / 10 - b for a, b in zip(none, r4, strict=True)]
    words = f"{shown(none)} → {shown(r4)} % of the deliveries"
    return Finding(words, Interval.of(spare).above(0))


@judges(
    "share of {nodes} processes that an event reaches, {label}, against the analysis in step",
    "the 95 % interval over seeds is not below what the analysis promises; there is no tolerance",
)
def reaches(found: Found, label: str, nodes: int) -> Finding:
    """Out of step, an event reaches as many processes as the analysis has for rounds in step."""
    its = found[Point(COVERAGE, label, nodes)]
    coverage = [1 - missed / 100 for missed in its.missed]
    promised = analysis.in_step(nodes, FANOUT, HOPS)
    words = (
        f"{shown([100 * c for c in coverage])} % with {shown(its.copies)} copies; "
        f"in step {100 * promised.coverage:.2f} % with {promised.copies:,.0f}"
    )
    return Finding(words, Interval.of(coverage).within(promised.coverage, 1))


@judges(
    "what the busiest process of the largest cluster sends, divided by the mean, {label}",
    "the 95 % interval is within 1.25: of 20 rounds with four targets drawn at random the busiest of "
    "125 receives some 1.2 times the mean by chance",
)
def even(found: Found, label: str) -> Finding:
    """In the largest cluster the busiest process sends at most a quarter more than the mean."""
    loads = curve(found, FIG4, label, "load")[1][-1]
    return Finding(f"× {shown(loads)}", Interval.of(loads).within(1, 1.25))


@judges(
    "{key} in Fig. 5: {one} divided by {other}, seed by seed",
    "the 95 % interval of the ratio is below {most} at each of these loads; {reason}",
)
def against(
    found: Found, one: str, other: str, key: str, at: slice, most: float, reason: str
) -> Finding:
    """One scheme of Fig. 5 has less than ``most`` times as much of something as another."""
    ones, others = (curve(found, FIG5, scheme, key)[1][at] for scheme in (one, other))
    pairs = [ratio(a, b) for a, b in zip(ones, others, strict=True)]
    words = "× " + ", ".join(map(shown, pairs))
    return Finding(words, all_of([Interval.of(pair).within(0, most) for pair in pairs]))


EVERYWHERE, BUSIEST, LIGHT = slice(None), slice(-1, None), slice(0, 3)
SMALL = (
    '"constant" and "not much" are read as a tenth, "small" and "slightly" as a quarter, which a plot '
    "of this size shows"
)


def scaling(label: str) -> tuple[Claim[Found], ...]:
    """The claims about a fixed number of coordinators."""
    return (
        Claim("§ 6.2, Fig. 4 c", f"message size decreases slightly with the group, {label}",
              change(label, "message", (0.75, 1), SMALL)),
        Claim("§ 6.2, Fig. 4 a", f"throughput remains constant, {label}",
              change(label, "throughput", (0.9, 1.1), SMALL)),
        Claim("§ 6.2, Fig. 4 b", f"latency (in rounds) increases as a logarithm, {label}",
              shape(label, "latency", True)),
    )  # fmt: skip


def recoveries(label: str) -> tuple[Claim[Found], ...]:
    """The claims about Fig. 5 c, for a rule of forwarding and a kind of failures."""
    return (
        Claim("§ 6.3, Fig. 5 c", f"fewer recoveries succeed at low load, {label}", fewer(label)),
        Claim("§ 6.3, Fig. 5 c", f"at high load they succeed as predicted, {label}",
              as_predicted(label)),
    )  # fmt: skip


CLAIMS: tuple[Claim[Found], ...] = (
    *scaling(FEW),
    *scaling(SOME),
    Claim("§ 6.2, Fig. 4 c", f"message size grows with n, {ALL}", shape(ALL, "message", False)),
    Claim("§ 6.2, Fig. 4 a", f"throughput decreases, {ALL}",
          change(ALL, "throughput", (0, 0.9), SMALL)),
    Claim("§ 6.2, Fig. 4 b", f"latency increases linearly, {ALL}",
          shape(ALL, "latency_ms", False)),
    Claim("§ 6.3, Fig. 5 b", "the causality layer significantly reduces the lost events",
          against(NONE, PLAIN, "lost", BUSIEST, 0.5, '"significantly" is read as to a half')),
    *(Claim("§ 6.3, Fig. 5 b", f"almost all events are delivered, {scheme}", nearly_all(scheme))
      for scheme in (R1, R4)),
    Claim("§ 6.3, Fig. 5 a", "latency grows only slowly with load, R4",
          change(R4, "latency", (0, 2), '"slowly": by less than a factor of 2 as the load grows '
                 "tenfold", FIG5)),
    Claim("§ 6.3, Fig. 5 a", "the causality layer adds a small overhead, p ≤ 0.2",
          against(NONE, PLAIN, "latency", LIGHT, 1.25, SMALL)),
    *(Claim("§ 6.3, Fig. 5 a", f"recovery does not add much latency, {scheme}",
            against(scheme, NONE, "latency", EVERYWHERE, 1.1, SMALL))
      for scheme in (R1, R4)),
    Claim("§ 6.3, Fig. 5 a", "at higher loads recovery even improves latency, R4, p = 0.5",
          against(R4, NONE, "latency", BUSIEST, 1, "less is less")),
    Claim("§ 6.3, Fig. 5 c", "recovery attempts increase with the load, R4", rising(FIG5, R4)),
    *(
        claim
        for rule in (KEEP, ONCE)
        for fails in (PACKETS, HOSTS)
        for claim in recoveries(f"{R4}, {rule}, {fails}")
    ),
    Claim("§ 6.3", "recovery significantly reduces the lost events: 20 % loss, to a tenth by R4",
          tenth()),
    *(
        Claim("§ 6.2", f"an event reaches {nodes} processes w.h.p., {KEEP}, {words}",
              reaches(f"{KEEP}, {words}", nodes))
        for words in AGES.values()
        for nodes in COVERED
    ),
    *(Claim("§ 7", f"the load is even, {label}", even(label)) for label in (FEW, SOME, ALL)),
    *(Claim("Theorem 5.1", f"buffers of 2npT events suffice, {buffers}", buffers_suffice(buffers))
      for buffers in CLUSTERS),
    *(Claim("Theorem 5.2", f"k = {k} targets suffice while p_f is at most k/2n",
            recoveries_succeed(k)) for k in TARGETS),
    Claim("§ 4.4", "a process sends and receives at most 2k+1 ALIVEs a round", alive_in()),
    Claim("§ 4.4", "and no other message but UPDATE", light()),
    *(Claim("§ 4.4", f"it takes 1/α rounds to reclaim tickets, α = {a:g}", takes("temporary", a))
      for a in SHARES),
    *(Claim("§ 4.4", f"joins succeed w.h.p., α = {a:g}", available(a, 2)) for a in SHARES),
    *(Claim("§ 4.4", f"joins succeed, by Chernoff's own bound, α = {a:g}", available(a, 1))
      for a in SHARES),
)  # fmt: skip
