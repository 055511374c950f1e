"""Whether what is said of the figures depends on what the paper leaves open."""

from statistics import fmean

from scripts.reproductions.claims import Answer, CannotJudgeError, Finding, judges
from scripts.reproductions.friedman.judges import Results
from scripts.reproductions.friedman.points import NETWORK, OVERLAY, Point
from scripts.reproductions.intervals import PAIRED, Interval, minus, shown
from testbed.report.trends import brief


@judges(
    "{key}, without data, in the smallest system, for every length of sending: Overlay < Timestamp",
    PAIRED,
)
def less_however_long(results: Results, key: str) -> Finding:
    """Overlay has less of it, however long senders send."""
    answers, words = {}, []
    small = results.scale.sizes[0]
    for ms in results.scale.durations:
        one, other = (results.at(Point(p, small, 0, ms), key) for p in (OVERLAY, NETWORK))
        words.append(f"{brief(fmean(one))} : {brief(fmean(other))}")
        answers[f"{ms:g} ms"] = Interval.of(minus(other, one)).above(0)
    return Finding.of_each("; ".join(words), answers)


@judges(
    "Timestamp's {key}, tree, without data, in a larger system and in the smallest, for every length "
    "of sending",
    "the 95 % interval over seeds of the difference is on one side of 0",
)
def grows_however_long(results: Results, key: str) -> Finding:
    """Queues are longer in the larger system, however long senders send."""
    answers, words = {}, []
    sizes = sorted({point.nodes for point in results.scale.scanned()})
    for ms in results.scale.durations:
        first, last = (results.at(Point(NETWORK, n, 0, ms), key) for n in (sizes[0], sizes[-1]))
        if any((*first, *last)):
            words.append(f"{shown(first)} → {shown(last)}")
            answers[f"{ms:g} ms"] = Interval.of(minus(last, first)).above(0)
    if not answers or sizes[0] == sizes[-1]:
        raise CannotJudgeError("there is nothing to compare: all queues are empty")
    return Finding.of_each("; ".join(words), answers)


@judges(
    "{key} with {data} bytes of data for every edge probability: Overlay {sign} Timestamp", PAIRED
)
def whatever_edges(results: Results, key: str, data: int, sign: str) -> Finding:
    """Which protocol has less of it does not depend on the edge probability."""
    answers: dict[str, Answer] = {}
    words = []
    for p in results.scale.probabilities:
        points = [o for o in results.scale.edges() if (o.probability, o.data) == (p, data)]
        values = {point.protocol: results.at(point, key) for point in points}
        one, other = values[OVERLAY], values[NETWORK]
        ahead = minus(other, one) if sign == "<" else minus(one, other)
        words.append(f"{brief(fmean(one))} : {brief(fmean(other))}")
        answers[f"p = {p:g}"] = Interval.of(ahead).above(0)
    return Finding.of_each("; ".join(words), answers)
