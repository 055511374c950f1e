"""How the shapes of the curves of Figs. 4-8 are judged, and logs, by the tolerance of ``judges``."""

from statistics import fmean

from scripts.reproductions.chandra.judges import EACH, LEVEL, LEVEL_RULE, below, highest
from scripts.reproductions.chandra.points import ALL, FIGURES
from scripts.reproductions.chandra.readings import KS, KS_PRIME, Curves
from scripts.reproductions.claims import CannotJudgeError, Finding, all_of, judges
from scripts.reproductions.intervals import Interval, minus, ratio, shown


@judges(
    "{whose} in per cent of n² in Fig. {figure}, S{settings}, at every {x}",
    f"{EACH} is below {{percent:g}}",
)
def always_below(
    found: Curves, figure: int, settings: tuple[int, ...], percent: float, x: str, whose: str = KS
) -> Finding:
    """All points of these settings are below a percentage."""
    curves = {f"S{s}": found(figure, s, whose) for s in settings}
    words = f"at most {', '.join(shown(highest(curve)) for curve in curves.values())}"
    answers = {
        name: all_of([below(its, percent) for its in curve.values()])
        for name, curve in curves.items()
    }
    return Finding.of_each(words, answers)


@judges(
    "KS' with KS in Fig. {figure}, S{setting}, at every point",
    "paired by seed: the 95 % interval of KS'/KS is within {low:g} to {high:g} at every point",
)
def close(
    found: Curves, figure: int, setting: int, low: float = LEVEL[0], high: float = LEVEL[1]
) -> Finding:
    """KS' and KS are close together."""
    ks, prime = found(figure, setting), found(figure, setting, KS_PRIME)
    ratios = [ratio(prime[x], ks[x]) for x in ks]
    means = [fmean(each) for each in ratios]
    words = f"KS'/KS {min(means):.2f} to {max(means):.2f}"
    return Finding(words, all_of([Interval.of(each).within(low, high) for each in ratios]))


@judges(
    "KS at the longest MTT with that at the shortest and at the last but one, Fig. 4, S1 to S4",
    "the 95 % interval over seeds of the rise from the shortest is above 0, and that of the last "
    "step, as a ratio, below 1.1",
)
def rises_then_steady(found: Curves) -> Finding:
    """KS's overhead rises with MTT, and hardly at the end."""
    answers, words = {}, []
    for s in ALL:
        curve = found(4, s)
        first, (before, last) = curve[min(curve)], (curve[x] for x in sorted(curve)[-2:])
        rise, step = Interval.of(minus(last, first)).above(0), below(ratio(last, before), LEVEL[1])
        answers[f"S{s}"] = all_of([rise, step])
        words.append(f"{fmean(first):.3g} → {fmean(before):.3g} → {fmean(last):.3g}")
    return Finding.of_each(", ".join(words), answers)


@judges(
    "S4 (M/T 0.9) with S1 (M/T 0.1) of Fig. 4, KS, at every MTT that both have",
    "paired by seed: the 95 % interval of the ratio is within 0.9 to 1.1",
)
def unaffected_by_multicasts(found: Curves) -> Finding:
    """Many multicasts take no more than few."""
    few, many = found(4, 1), found(4, 4)
    ratios = {f"{x:g} ms": ratio(many[x], few[x]) for x in many if x in few}
    words = ", ".join(f"{fmean(each):.2f}" for each in ratios.values())
    answers = {name: Interval.of(each).within(*LEVEL) for name, each in ratios.items()}
    return Finding.of_each(words, answers)


@judges("{whose} in Fig. {figure}, S{settings}, at {where}", LEVEL_RULE)
def constant(
    found: Curves,
    figure: int,
    settings: tuple[int, ...],
    whose: str = KS,
    where: str = "every point",
    since: float = 0,
) -> Finding:
    """The curve hardly leaves its mean."""
    answers, words = {}, []
    for s in settings:
        curve = {x: its for x, its in found(figure, s, whose).items() if x >= since}
        if len(curve) < 2:
            raise LookupError(f"two points of Fig. {figure} from {since:g} on")
        means = tuple(fmean(seed) for seed in zip(*curve.values(), strict=True))
        shares = [ratio(its, means) for its in curve.values()]
        answers[f"S{s}"] = all_of([Interval.of(share).within(*LEVEL) for share in shares])
        far = max((fmean(share) - 1 for share in shares), key=abs)
        words.append(f"{far:+.0%}")
    return Finding.of_each(f"at most {', '.join(words)} from the mean", answers)


@judges(
    "KS at the largest value of Fig. {figure} with that at the smallest, S{settings}",
    "paired by seed: the 95 % interval of their ratio is within 0.9 to 1",
)
def falls_slightly(found: Curves, figure: int, settings: tuple[int, ...]) -> Finding:
    """KS takes a little less the more often messages are multicast."""
    answers, words = {}, []
    for s in settings:
        curve = found(figure, s)
        first, last = curve[min(curve)], curve[max(curve)]
        answers[f"S{s}"] = Interval.of(ratio(last, first)).within(LEVEL[0], 1)
        words.append(f"{fmean(first):.3g} → {fmean(last):.3g}")
    return Finding.of_each(", ".join(words), answers)


@judges(
    "the largest difference of two runs of a point, relative to their mean: KS, Fig. 3",
    "it is at most 1 %; no interval, for it is about these runs",
)
def runs_agree(found: Curves, runs: int = 10) -> Finding:
    """The runs of a point differ by no more than a percent."""
    every = [its for s in ALL for its in found(3, s).values()]
    if len(every[0]) < runs:
        raise CannotJudgeError(f"it is about {runs} runs of a point, and here are {len(every[0])}")
    spreads = [(max(its) - min(its)) / fmean(its) for its in every]
    return Finding(f"{min(spreads):.1%} to {max(spreads):.1%}", max(spreads) <= 0.01)


@judges(
    "the log of {whose} divided by what a message carries, along every curve",
    LEVEL_RULE,
)
def log_follows(found: Curves, whose: str) -> Finding:
    """Logs grow and shrink as messages do."""
    answers, far = {}, 0.0
    for figure in FIGURES:
        for s in ALL:
            try:
                logs, messages = found(figure, s, whose, log=True), found(figure, s, whose)
            except LookupError:
                continue
            if len(messages) < 2:
                continue
            ratios = {x: ratio(logs[x], messages[x]) for x in messages}
            means = tuple(fmean(seed) for seed in zip(*ratios.values(), strict=True))
            shares = [ratio(each, means) for each in ratios.values()]
            far = max(far, *(abs(fmean(share) - 1) for share in shares))
            inside = [Interval.of(share).within(*LEVEL) for share in shares]
            answers[f"Fig. {figure} S{s}"] = all_of(inside)
    if not answers:
        raise CannotJudgeError("a curve has two points at least")
    return Finding.of_each(f"at most {far:.0%} from its mean", answers)


@judges("processor time of KS", "none: simulated runs take no processor time of their own")
def no_time(found: Curves) -> Finding:
    """Time is measured by a benchmark, and not by simulated runs."""
    raise CannotJudgeError("runs measure integers; `scripts/bench ks` measures processor time")
