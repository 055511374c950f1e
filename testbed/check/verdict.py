"""The verdict on a run: what was found, how often, where, and why in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from testbed.check.history import History
from testbed.check.judge import APART, VIOLATIONS, Judge
from testbed.check.logs import Malformed, Name
from testbed.check.paths import Step, shortest_path
from testbed.check.tickets import CONFLICTS, Conflict

SHOWN = 20
TOLERATED_BY_OPTIMISTS = {"gap", "loss"}

_SENTENCES = {
    "duplicate": "node {0} delivered {1} more than once",
    "loss": "node {0} never delivered {1}, which was sent to it",
    "unsent": "node {0} delivered {1}, which nobody sent",
    "misdelivered": "node {0} delivered {1}, which was not sent to it",
    "cycle": "node {0} delivered {1} before it can have been sent: that delivery happened before"
    " the send",
    "forged": "node {0} sent {1} in another node's name",
    "resent": "node {0} sent {1} twice: two messages with one name",
    "excused": "node {0}, which crashed, never delivered {1}; that is no fault",
    "orphaned": "node {0} never delivered {1}, whose sender crashed; that is no fault",
    "left": "node {0}, which had left, never delivered {1}; that is no fault",
    "excused_gap": "node {0} delivered {1} after a crash and lacks what happened before it;"
    " that is no fault",
    "unjudged": "node {0} and {1}: the log that would tell is damaged or missing",
}


class Where(NamedTuple):
    """The places of one kind of finding: a process, mostly a node, and a message each."""

    nodes: NDArray[np.int64]
    slots: NDArray[np.int32]


class Violation(NamedTuple):
    """``process`` delivered ``effect`` without, or before, ``cause``, which happened before it."""

    kind: str  # "order": cause was delivered later; "gap": it never was
    process: int
    cause: Name
    effect: Name
    path: tuple[Step, ...]

    def __str__(self) -> str:
        cause, effect = _m(self.cause), _m(self.effect)
        fault = f"before {cause}, but" if self.kind == "order" else f"but never {cause}, although"
        return (
            f"node {self.process} delivered {effect} {fault} "
            f"{cause} happened before {effect}:  {_chain(self.path)}"
        )


class Promises(NamedTuple):
    """What a run is held to."""

    optimistic: bool = False  # messages may be lost; those that are delivered are in causal order
    local_groups: tuple[frozenset[int], ...] = ()  # within which delays are short, at the beginning
    lasted: float = 0  # milliseconds, as the engine says
    ring_failures: int = 0  # k: so many of 2k+1 neighbours in a ring of coordinators may fail


STRICT = Promises()


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the logs of a run show. Counts are exact; paths are worked out on demand.

    A delivery at a node is counted at most once as "order" and once as "gap", however many causes
    it lacks; the cause shown is the nearest, the one with the fewest relays in between.
    """

    nodes: int
    messages: int = 0
    deliveries: int = 0
    due: int = 0  # deliveries, if every message comes to all its destinations
    found: Mapping[str, Where] = field(default_factory=dict, repr=False)
    malformed: int = 0
    malformed_lines: tuple[Malformed, ...] = field(default=(), repr=False)
    missing: tuple[int, ...] = ()
    damaged: tuple[int, ...] = ()
    crashed: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()
    promises: Promises = STRICT
    tickets: int = 0  # that were owned or used
    conflicts: tuple[Conflict, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)  # who could not send, and for how long
    figures: Mapping[str, float] = field(default_factory=dict, repr=False)
    judge: Judge | None = field(default=None, repr=False)
    parts: Mapping[int, "Verdict"] = field(default_factory=dict, repr=False)  # one for each cluster

    def with_figures(self, figures: Mapping[str, float]) -> Self:
        """This verdict with the figures of one more check."""
        return replace(self, figures={**self.figures, **figures})

    @property
    def optimistic(self) -> bool:
        """Whether the protocol may lose messages."""
        return self.promises.optimistic

    @property
    def ok(self) -> bool:
        """Whether everything could be judged and nothing is wrong."""
        return self.verdict == "valid"

    @property
    def verdict(self) -> str:
        """Invalid if something is proven wrong, else unknown if logs leave doubt, else valid."""
        if self.faults:
            return "invalid"
        # The last line of a process that was killed may well be cut: alone it leaves no doubt.
        doubt = set(self.damaged) - set(self.crashed) or self.missing or self.problems
        return "unknown" if doubt or self.count("unjudged") else "valid"

    @property
    def faults(self) -> tuple[str, ...]:
        """The kinds that were found and are faults of a protocol that makes such promises."""
        tolerated = TOLERATED_BY_OPTIMISTS if self.optimistic else ()
        kinds = (*VIOLATIONS, *CONFLICTS)
        return tuple(kind for kind in kinds if self.count(kind) and kind not in tolerated)

    @property
    def counts(self) -> dict[str, int]:
        """How often each kind was found; the kinds are of VIOLATIONS, CONFLICTS and APART."""
        return {kind: self.count(kind) for kind in (*VIOLATIONS, *CONFLICTS, *APART)}

    def count(self, kind: str) -> int:
        """How often a kind was found."""
        if kind in CONFLICTS:
            return sum(conflict.kind == kind for conflict in self.conflicts)
        own = len(self.found[kind].slots) if kind in self.found else 0
        return own + sum(part.count(kind) for part in self.parts.values())

    def where(self, kind: str, limit: int | None = None) -> list[tuple[int, Name]]:
        """The nodes and messages at which a kind was found."""
        if self.parts:
            return [some for part in self.parts.values() for some in part.where(kind, limit)][
                :limit
            ]
        if kind not in self.found or self.judge is None:
            return []
        nodes, slots = (column[:limit].tolist() for column in self.found[kind])
        names, home = self.judge.history.names, self.judge.history.logs.node
        return [(home(process), names[slot]) for process, slot in zip(nodes, slots, strict=True)]

    def violations(self, limit: int = SHOWN) -> list[Violation]:
        """The first violations of each of the two kinds, each with its causal path."""
        if self.parts:
            return [some for part in self.parts.values() for some in part.violations(limit)]
        return [
            self._violation(self.judge, kind, int(node), int(slot))
            for kind in ("order", "gap")
            if kind in self.faults and self.judge is not None
            for node, slot in zip(*(c[:limit] for c in self.found[kind]), strict=True)
        ]

    def explain(self, limit: int = SHOWN) -> list[str]:
        """Sentences for people: the verdict, then at most ``limit`` for each thing found."""
        lines = [self.headline, *self.problems, *_some([*self.notes[:limit]], len(self.notes))]
        violations = self.violations(limit)
        for kind in (*self.faults, *APART):
            if kind in ("order", "gap"):
                shown = [str(v) for v in violations if v.kind == kind]
            elif kind in CONFLICTS:
                shown = [c.sentence for c in self.conflicts if c.kind == kind][:limit]
            else:
                where = self.where(kind, limit)
                shown = [_SENTENCES[kind].format(n, _m(name)) for n, name in where]
            lines += _some(shown, self.count(kind))
        bad = self.malformed_lines[:limit]
        lines += _some([f"{b.file}, line {b.line}: {b.reason}" for b in bad], self.malformed)
        silent = [f"node {n} has no log" for n in self.missing[:limit]]
        return lines + _some(silent, len(self.missing))

    def to_json(self, limit: int = SHOWN) -> dict[str, Any]:
        """The verdict in plain values; of each kind the count and the first few."""
        return {
            "verdict": self.verdict,
            "nodes": self.nodes,
            "messages": self.messages,
            "deliveries": self.deliveries,
            "due": self.due,
            "counts": self.counts | {"malformed": self.malformed},
            "violations": [_violation_json(v) for v in self.violations(limit)],
            "found": {
                kind: [[node, *name] for node, name in self.where(kind, limit)]
                for kind in (*VIOLATIONS, *APART)
                if self.count(kind)
            },
            "tickets": self.tickets,
            "conflicts": [conflict._asdict() for conflict in self.conflicts[:limit]],
            "malformed": [line._asdict() for line in self.malformed_lines[:limit]],
            "missing": list(self.missing),
            "damaged": list(self.damaged),
            "crashed": list(self.crashed),
            "problems": list(self.problems),
            "optimistic": self.optimistic,
            "notes": list(self.notes[:limit]),
        }

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        words = VIOLATIONS | CONFLICTS
        found = [f"{self.count(kind)} × {words[kind]}" for kind in self.faults]
        size = f"{self.messages} messages, {self.deliveries} deliveries, {self.nodes} nodes"
        if self.optimistic:
            lost = self.count("loss")
            size += f", {lost} of {self.due} deliveries lost ({lost / max(1, self.due):.2%})"
        if self.tickets:
            size += f", {self.tickets} tickets"
        return f"{self.verdict}: {size}" + (f"; {', '.join(found)}" if found else "")

    @staticmethod
    def _violation(judge: Judge, kind: str, node: int, effect: int) -> Violation:
        history: History = judge.history
        path = shortest_path(history, effect, judge.cause_of(kind, node, effect))
        home = history.logs.node(node)
        return Violation(kind, home, path[0].cause, history.names[effect], tuple(path))


class Finding(NamedTuple):
    """A verdict in words and as data, for another process or another machine."""

    verdict: str
    sentences: tuple[str, ...]
    json: dict[str, Any]


def finding(verdict: Verdict, limit: int = SHOWN) -> Finding:
    """What people and scripts are shown of a verdict."""
    return Finding(verdict.verdict, tuple(verdict.explain(limit)), verdict.to_json())


def _m(name: Name) -> str:
    return f"m({name[0]},{name[1]})"


def _chain(path: tuple[Step, ...]) -> str:
    first = path[0]
    links = [f"{first.cause[0]} sent {_m(first.cause)}"]
    for index, step in enumerate(path):
        if step.event == "send":
            links[-1] += f" and then {_m(step.effect)}"
        else:
            thing = "that" if index else "it"
            links.append(f"{step.process} delivered {thing} and sent {_m(step.effect)}")
    return " → ".join(links)


def _some(shown: list[str], count: int) -> list[str]:
    more = count - len(shown)
    return [*shown, f"… and {more} more of these"] if shown and more else shown


def _violation_json(violation: Violation) -> dict[str, Any]:
    return {
        "kind": violation.kind,
        "process": violation.process,
        "cause": list(violation.cause),
        "effect": list(violation.effect),
        "path": [
            step._asdict() | {"cause": list(step.cause), "effect": list(step.effect)}
            for step in violation.path
        ],
        "sentence": str(violation),
    }
