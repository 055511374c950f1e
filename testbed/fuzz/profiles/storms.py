"""Storms: small systems in which all talk at once whenever somebody goes, comes back or is missed.

Most mistakes of a group layer show only if several things meet within a few heartbeats: somebody comes
back, others send meanwhile, and an answer is given inside a delivery. If who sends, who answers and
when is drawn one by one, all of it rarely fits. So a storm leaves little to chance: around the end of
each fault, and around another moment that follows from it, any process sends, mostly to all, and
most messages are answered, in many storms by the process that the fault strikes. In this way one run
tries most of what could meet there, and in a small system it takes little time.

What is drawn is a scene of one to three faults: processes are cut off and return; they leave, after a
crash or not, and join again; any of these in a row; or nothing but groups that split and merge.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.fuzz.elements import Document, Table, rounded
from testbed.workloads.script import ScriptedMessage

PROCESSES = (3, 4, 4, 5, 5, 6)
SCENES = ("heal", "heal", "heal", "rejoin", "rejoin", "row")
DELAYS_MS: tuple[Any, ...] = (0.0, 1.0, [0.0, 1.0], [0.0, 5.0])
RATES_MBIT = (10.0, 100.0)
AT_ENDS = (8, 12)  # messages, without answers
ELSEWHERE = 6
WIDTHS = (1.0, 3.0, 3.0, 6.0)  # of what is around a moment, in heartbeats
SUBSETS = (0.0, 0.0, 0.5, 1.0, 1.0)  # how many messages are to some processes only
ANSWERED = (0.0, 0.7, 1.0, 1.0, 1.0)
CHAINS = (1, 1, 2, 3)  # answers to answers


def calm(rng: random.Random) -> Document:
    """A small system on which nothing has been done yet."""
    nodes = rng.choice(PROCESSES)
    complete = {"model": "pure-random", "nodes": nodes, "edge_probability": 1.0}
    return {
        "channel": "raw",
        "topology": rng.choice([complete, complete, complete, {"model": "line", "nodes": nodes}]),
        "links": {"delay_ms": rng.choice(DELAYS_MS), "bandwidth_mbit": rng.choice(RATES_MBIT)},
        "workload": {"model": "script", "send": [{"node": 0, "at_ms": 0.0}]},
        "fault": [],
    }


@dataclass
class Storm:
    """Draws faults, and messages around them, for a system of some processes with these settings."""

    nodes: int
    settings: Any
    rng: random.Random

    def __post_init__(self) -> None:
        self.victims = self.rng.sample(range(self.nodes), min(3, self.nodes))
        self.reshapes = self.settings.split_above is not None or self.settings.merge_below > 0

    def faults(self) -> list[Table]:
        """A scene; where groups split and merge, mostly less of it, or nothing."""
        rng = self.rng
        scenes: dict[str, Callable[[], list[Table]]] = {
            "heal": self._heal,
            "rejoin": self._rejoin,
            "row": self._row,
        }
        drawn = scenes[rng.choice(SCENES)]()
        return drawn[: rng.choice([0, 0, 1, len(drawn)])] if self.reshapes else drawn

    def messages(self, faults: list[Table]) -> list[ScriptedMessage]:
        """All talk around the ends of these faults, and around other moments."""
        rng, beat = self.rng, self.settings.heartbeat_ms
        talkers = rng.sample(range(self.nodes), rng.choice([2, self.nodes, self.nodes]))
        answering = rng.choice(["any", "any", "subject"])
        width, subsets = rng.choice(WIDTHS) * beat, rng.choice(SUBSETS)
        answered, chain = rng.choice(ANSWERED), rng.choice(CHAINS)
        messages: list[ScriptedMessage] = []
        for moment, subject, most in self._moments(faults):
            for _ in range(most):
                at = rounded(max(0.0, moment + rng.uniform(-1, 1) * width))
                message: ScriptedMessage = {"node": rng.choice(talkers), "at_ms": at}
                messages.append(self._addressed(message, subject, subsets))
                for _ in range(chain):
                    if rng.random() >= answered:
                        break
                    there = messages[-1].get("to") or [*range(self.nodes)]
                    node = subject if answering == "subject" else rng.choice(there)
                    message = {"node": node, "answers": len(messages) - 1}
                    messages.append(self._addressed(message, subject, subsets))
        return messages

    def _moments(self, faults: list[Table]) -> list[tuple[float, int, int]]:
        """When there is much to say, who is struck then, and how much is said."""
        s, rng = self.settings, self.rng
        found: list[tuple[float, int, int]] = []
        for fault in faults:
            begins, lasts = fault["at_ms"], fault.get("for_ms", s.grace_ms)
            subject = fault["node"] if "node" in fault else rng.choice(fault["nodes"])
            found.append((begins + lasts, subject, rng.choice(AT_ENDS)))
            if rng.random() < 0.6:
                later = rng.choice([0.0, s.patience_ms, s.grace_ms, *[rng.uniform(0, lasts)] * 2])
                found.append((begins + later, subject, ELSEWHERE))
        if self.reshapes or not faults:
            times = [rng.uniform(0, 3 * s.patience_ms) for _ in range(2)]
            found += [(at, rng.randrange(self.nodes), AT_ENDS[0]) for at in times]
        return found

    def _addressed(self, message: ScriptedMessage, subject: int, subsets: float) -> ScriptedMessage:
        """To all, or to the one that is struck and some others."""
        if self.rng.random() < subsets:
            others = self.rng.sample(range(self.nodes), 2)
            message["to"] = sorted({subject, *others})
        return message

    def _heal(self) -> list[Table]:
        """One process is cut off or stands still, or two are cut off, once or twice."""
        rng, drawn = self.rng, list[Table]()
        one, two = self.victims[:1], sorted(self.victims[:2])
        for _ in range(rng.choice([1, 1, 2])):
            cut = {"kind": "partition", "nodes": rng.choice([one, one, one, two])}
            stop = {"kind": "pause", "node": one[0]}
            drawn.append(self._lasting(rng.choice([cut, cut, cut, stop]), drawn))
        return drawn

    def _rejoin(self) -> list[Table]:
        """One or two leave, in half of the storms after somebody has crashed, and mostly return."""
        rng, (crashed, *others) = self.rng, self.victims
        drawn = [{"kind": "crash", "node": crashed, "at_ms": self._later([])}]
        drawn = drawn if rng.random() < 0.5 else []
        for node in rng.sample(others, rng.choice([1, 2])):
            drawn.append(self._lasting({"kind": "leave", "node": node}, drawn))
            if rng.random() < 0.2:
                del drawn[-1]["for_ms"]
        return drawn

    def _row(self) -> list[Table]:
        """Any faults, each of which begins about when another begins or ends."""
        rng, drawn = self.rng, list[Table]()
        for _ in range(rng.choice([1, 2, 3])):
            node = rng.choice(self.victims)
            strikes: list[Table] = [{"kind": kind, "node": node} for kind in ("leave", "crash")]
            strikes += [{"kind": "partition", "nodes": [node]}, {"kind": "pause", "node": node}]
            drawn.append(self._lasting(rng.choice(strikes), drawn))
            if drawn[-1]["kind"] in ("leave", "crash") and rng.random() < 0.3:
                del drawn[-1]["for_ms"]
        return drawn

    def _lasting(self, fault: Table, before: list[Table]) -> Table:
        """A fault for a few heartbeats, or so long that somebody is missed or replaced."""
        s, rng = self.settings, self.rng
        lengths = [
            rng.uniform(0.3, 3) * s.heartbeat_ms,
            rng.uniform(0.8, 1.5) * s.patience_ms,
            *[rng.uniform(0.5, 1.3) * s.grace_ms] * 2,
        ]
        return {**fault, "at_ms": self._later(before), "for_ms": rounded(rng.choice(lengths))}

    def _later(self, faults: list[Table]) -> float:
        """A while after the start, or after a fault has ended that has one."""
        s, rng = self.settings, self.rng
        ends = [fault["at_ms"] + fault.get("for_ms", 0.0) for fault in faults]
        most = rng.choice([3 * s.heartbeat_ms, 1.5 * s.patience_ms, 1.5 * s.grace_ms])
        return rounded(rng.choice(ends or [0.0]) + rng.uniform(0, most if ends else s.patience_ms))
