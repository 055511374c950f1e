"""Section 4.4: what cluster management costs, how long exclusion takes, who gets tickets under churn.

A cluster with 20 tickets, of which a share α belongs to coordinators. In every round each of them
crashes with probability p_f; it is back after a round and asks for a ticket again. The paper measures
none of this: it says that a process sends and receives at most 2k+1 ALIVEs a round, that to reclaim the
tickets of a failed process takes 1/α rounds on average, and that a join succeeds with high probability
while p_f < (1 - α)/2: except with probability (e/4)^(2 p_f n) fewer than 2 p_f n tickets are to be
reclaimed. Chernoff's bound for twice the mean, p_f n, is (e/4)^(p_f n), as in Theorem 5.1; both are
judged.

What takes 1/α rounds is the exclusion alone, not the time until a failure is suspected: for so long
the one that takes over is a temporary coordinator, which assigns nothing. The paper derives that from
the tickets of one coordinator, which are 1/α on average. But Algorithm 4 waits for a round for each
ticket between the one that takes over and the next process, which are the free ones of both it and the
failed one. On leases it waits for a lease and a round, which is what is measured here.
"""

import math
import random
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from scripts.reproductions.chapter import Plot, Table
from scripts.reproductions.claims import Finding, all_of, judges
from scripts.reproductions.drawing import drawn
from scripts.reproductions.gidenstam.told import ToldSimulation
from scripts.reproductions.intervals import Interval, cell, draw, shown
from scripts.reproductions.running import compute
from testbed.experiment import Scenario, parse
from testbed.node.log import Log
from testbed.progress import silent
from testbed.protocols import Message
from testbed.protocols.cluster.tickets.encoding import WordMessage
from testbed.protocols.cluster.tickets.lease_messages import Alive, Poll

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TICKETS, K = 20, 2
SHARES = (0.25, 0.5, 0.75)
FAILING = (0.0, 0.005, 0.01, 0.02, 0.05)
ROUNDS, WARM = 60, 5
ROUND = 100_000_000  # ns
FOREVER = 1 << 62


class Churn(NamedTuple):
    """A share of tickets that have owners, and the probability that a process fails in a round."""

    alpha: float
    p_f: float

    @override
    def __str__(self) -> str:
        return f"α = {self.alpha:g}, p_f = {self.p_f:g}"


class Measured(NamedTuple):
    """What one run shows, or the values of all seeds."""

    alive: Any  # ALIVEs in a round of a member
    messages: Any  # all messages of the cluster management, likewise
    available: Any  # share of the time in which somebody may assign a ticket
    exclusion: Any  # rounds from a crash until the ticket may be assigned again
    temporary: Any  # … of these, while there is a temporary coordinator
    join: Any  # rounds from a restart until there is a ticket
    served: Any  # share of the restarts that get one


Found = Mapping[Any, Any]  # the values of all seeds at each Churn, and those of other parts


@dataclass
class Sent:
    """Messages of the cluster management, and the rounds of members, which begin with a poll."""

    messages: int = 0
    alive: int = 0
    rounds: set[tuple[int, int]] = field(default_factory=set)

    def add(self, message: WordMessage, peers: int) -> None:
        """Count a message."""
        self.messages += peers
        self.alive += peers * isinstance(message, Alive)
        if isinstance(message, Poll):
            self.rounds.add((message.source, message.register.number))


class Claims(Log):
    """Who owned and could assign what from when to when, who crashed and who came back."""

    def __init__(self) -> None:
        self.lines: defaultdict[int, list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
        self.crashes: list[tuple[int, int]] = []  # when, who
        self.restarts: list[tuple[int, int]] = []

    @override
    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        if event in ("crash", "restart"):
            (self.crashes if event == "crash" else self.restarts).append((t, node))
        if event in ("crash", "tickets"):
            self.lines[node].append((t, facts if event == "tickets" else {"owns": None}))

    def owned(self, end: int) -> Iterator[tuple[int, int, int, int]]:
        """When which process owned which ticket."""
        for node, start, stop, facts in self._spans(end):
            yield start, stop, node, facts["owns"]

    def assignable(self, end: int) -> Iterator[tuple[int, int, int]]:
        """When which ticket could be assigned."""
        for _, start, stop, facts in self._spans(end):
            for ticket in facts["assigns"] if max(start, facts["from"]) < stop else ():
                yield max(start, facts["from"]), stop, ticket

    def temporary(self, end: int) -> Iterator[float]:
        """For how many rounds each temporary coordinator was one."""
        for lines in self.lines.values():
            since = 0
            for t, facts in lines:
                if t < end and facts.get("from", 0) > max(since, t):
                    since = facts["from"]
                    yield (since - t) / ROUND

    def _spans(self, end: int) -> Iterator[tuple[int, int, int, Mapping[str, Any]]]:
        for node, lines in self.lines.items():
            for (start, facts), (later, _) in pairwise([*lines, (end, {})]):
                if facts["owns"] is not None:
                    until = FOREVER if facts["until"] is None else facts["until"]
                    yield node, start, min(later, until), facts


def crashes(alpha: float, p_f: float, seed: int) -> Iterator[dict[str, Any]]:
    """Every coordinator crashes in a round with a probability, and is back after another."""
    rng = random.Random(f"{alpha} {p_f} {seed}")
    for node in range(round(alpha * TICKETS)):
        turn = WARM
        while turn < ROUNDS:
            if rng.random() < p_f:
                at_ms = (turn + rng.random()) * ROUND / 1e6
                yield {"kind": "crash", "node": node, "at_ms": at_ms, "for_ms": ROUND / 1e6}
                turn += 2
            turn += 1


def scenario(point: Churn, seed: int) -> Scenario:
    """One run; only the cluster management has something to do."""
    document = {
        "name": "gidenstam-tickets",
        "seed": seed,
        "protocol": {
            "name": "cluster",
            "management": "leases",
            "coordinators": round(point.alpha * TICKETS),
            "tickets": TICKETS,
            "k": K,
            "lease_round_ms": ROUND / 1e6,
        },
        "topology": {"model": "pure-random", "nodes": TICKETS, "edge_probability": 1.0},
        "links": {"delay_ms": 1.0, "bandwidth_mbit": 100.0},
        "workload": {"model": "script", "send": [{"node": 0, "at_ms": ROUNDS * ROUND / 1e6}]},
        "fault": [*crashes(*point, seed)],
    }
    return Scenario.of(parse(document, Path("gidenstam-tickets"))[0])


def measure(piece: tuple[Churn, int]) -> Measured:
    """Run a point once."""
    point, seed = piece
    log, sent = Claims(), Sent()
    end = ROUNDS * ROUND

    def count(message: Message, copies: int, now: int) -> None:
        if isinstance(message, WordMessage) and now < end:
            sent.add(message, copies)

    ToldSimulation(scenario(point, seed), log, count).run(silent)
    return figures(log, sent, end)


def figures(log: Claims, sent: Sent, end: int) -> Measured:
    """What a log shows up to a time; not a number where nothing happened."""
    owned, free = sorted(log.owned(end)), sorted(log.assignable(end))
    moments = range(WARM * ROUND, end, ROUND // 2)
    open_ = [any(a <= t < b for a, b, _ in free) for t in moments]
    reclaimed, back = [], []
    for t, node in log.crashes:
        had = [ticket for a, b, who, ticket in owned if who == node and a < t <= b + ROUND]
        again = [a for a, b, ticket in free if had and ticket == had[-1] and b > t]
        reclaimed += [(max(again[0], t) - t) / ROUND] if again else []
    before_end = [(t, node) for t, node in log.restarts if t < end - 10 * ROUND]
    for t, node in before_end:
        got = [a for a, _, who, _ in owned if who == node and a >= t]
        back += [(got[0] - t) / ROUND] if got else []
    return Measured(
        sent.alive / len(sent.rounds),
        sent.messages / len(sent.rounds),
        fmean(open_),
        mean(reclaimed),
        mean([*log.temporary(end)]),
        mean(back),
        len(back) / len(before_end) if before_end else math.nan,
    )


def mean(values: Sequence[float]) -> float:
    """The mean; not a number without any values."""
    return fmean(values) if values else math.nan


def known(values: Sequence[float]) -> list[float]:
    """The values of the seeds that have one."""
    return [value for value in values if not math.isnan(value)]


def churned(found: Found) -> dict[Churn, Measured]:
    """The points of this part, if it was run."""
    its = {point: m for point, m in found.items() if isinstance(point, Churn)}
    if not its:
        raise LookupError("section 4.4")
    return its


@judges(
    f"ALIVEs that a member hears in a round, against 2k+1 = {2 * K + 1}, for every α and p_f",
    "the 95 % interval over seeds is not above that; there is no tolerance, since it is a bound",
)
def alive_in(found: Found) -> Finding:
    """A member hears 2k+1 ALIVEs in a round at most, on average."""
    most = 2 * K + 1
    its = churned(found)
    answers = [Interval.of(m.alive).within(0, most) for m in its.values()]
    calm, storm = (max(fmean(m.alive) for p, m in its.items() if bool(p.p_f) == b) for b in (0, 1))
    told = f"{calm:.3f} a round without failures, up to {storm:.3f} with; 2k+1 = {most}"
    return Finding(told, all_of(answers))


@judges(
    f"all messages of the cluster management in a round of a member, against 2k+2 = {2 * K + 2}",
    "the 95 % interval over seeds is not above that; there is no tolerance, since it is a bound",
)
def light(found: Found) -> Finding:
    """All messages of the cluster management are at most the ALIVEs and an UPDATE."""
    most = 2 * K + 2
    its = churned(found)
    answers = [Interval.of(m.messages).within(0, most) for m in its.values()]
    highest = max(its.values(), key=lambda m: fmean(m.messages))
    return Finding(f"up to {shown(highest.messages)} a round; 2k+2 = {most}", all_of(answers))


@judges(
    "rounds, {figure}, against 1/α, for α = {alpha} and every p_f",
    "the 95 % interval over the seeds in which it happened is not above that",
)
def takes(found: Found, figure: str, alpha: float) -> Finding:
    """What is measured is at most 1/α."""
    its = churned(found).items()
    values = [known(getattr(m, figure)) for p, m in its if p.alpha == alpha and p.p_f]
    answers = [Interval.of(each).within(0, 1 / alpha) for each in values if len(each) > 1]
    every = [value for each in values for value in each]
    return Finding(f"{shown(every)}; 1/α = {1 / alpha:.3g}", all_of(answers))


@judges(
    "share of the time in which a ticket may be assigned, α = {alpha}, p_f < (1 - α)/2, against "
    "1 - (e/4)^({times} p_f n)",
    "the 95 % interval over seeds is above the bound; there is no tolerance",
)
def available(found: Found, alpha: float, times: int) -> Finding:
    """A ticket may be assigned except with probability (e/4)^(times p_f n), for low p_f."""
    points = [p for p in churned(found) if p.alpha == alpha and 0 < p.p_f < (1 - alpha) / 2]
    bounds = [1 - (math.e / 4) ** (times * p.p_f * TICKETS) for p in points]
    answers = [
        Interval.of(found[p].available).within(bound, math.inf)
        for p, bound in zip(points, bounds, strict=True)
    ]
    told = ", ".join(
        f"p_f {p.p_f:g}: {shown(found[p].available)} (> {bound:.2f})"
        for p, bound in zip(points, bounds, strict=True)
    )
    return Finding(told, all_of(answers))


SHOWN = (
    ("available", "share of the time in which a ticket may be assigned"),
    ("exclusion", "rounds from a crash until the ticket may be assigned again"),
    ("temporary", "of these with a temporary coordinator"),
    ("join", "rounds from a restart to a ticket"),
    ("served", "share of the restarts that get one"),
    ("alive", "ALIVEs for each round of a member"),
    ("messages", "all messages for each round of a member"),
)


def measured(options: Namespace) -> dict[Churn, Measured]:
    """Run all points with all seeds."""
    points = [Churn(a, p) for a in SHARES for p in FAILING]
    pieces = {f"{p}, seed {s}": (p, s) for p in points for s in range(1, options.seeds + 1)}
    found = compute("gidenstam-tickets", measure, pieces, options, ["cluster"])
    of_each = {p: [found[name] for name, (q, _) in pieces.items() if p == q] for p in points}
    return {point: Measured(*zip(*runs, strict=True)) for point, runs in of_each.items()}


def tables(found: dict[Churn, Measured]) -> list[Table]:
    """Everything, for each share of the tickets that have owners."""
    return [
        Table(
            f"tickets-{key}",
            f"Section 4.4: {label}",
            ("by p_f", *(f"{p:g}" for p in FAILING)),
            [
                [f"α = {a:g}", *(cell(getattr(found[Churn(a, p)], key)) for p in FAILING)]
                for a in SHARES
            ],
        )
        for key, label in SHOWN
    ]


def plot(found: dict[Churn, Measured]) -> Plot:
    """Availability, exclusion and joins against p_f."""

    def draw_all(panels: "list[Axes]") -> None:
        for axes, key in zip(panels, ("available", "exclusion", "join"), strict=True):
            for index, alpha in enumerate(SHARES):
                values = {p: known(getattr(found[Churn(alpha, p)], key)) for p in FAILING}
                places = [p for p in FAILING if len(values[p]) > 1]
                draw(axes, index, f"α = {alpha:g}", places, [values[p] for p in places])
            axes.set(ylim=(0, None), xlabel="p_f", ylabel=dict(SHOWN)[key])

    caption = "Section 4.4: the cluster management under churn, by the share α of owned tickets."
    return drawn("tickets", caption, 0.34, 1, 3, draw_all)
