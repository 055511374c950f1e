"""Storms: small systems in which much is said whenever somebody goes, comes back or is missed.

Most mistakes of a group layer show only if several things meet within a few heartbeats: somebody comes
back, others send meanwhile, and an answer is given inside a delivery. If who sends, who answers and
when is drawn one by one, all of it rarely fits. So a storm leaves little to chance: around the end of
each fault, and around another moment that follows from it, any process sends, mostly to all, and
most messages are answered, in many storms by the process that the fault strikes. Or one process sends
all the while that another is away, which answers everything when it is back; or the one that is away
sends. Or little is said, and only as somebody goes: then groups are at rest, and are split and merged,
as soon as it is back. In this way one run tries most of what could meet there, and in a system of three
or four processes it takes little time.

What is drawn is a scene of one to three faults, mostly of a server and members of its group: processes
or whole groups are cut off and return; two go, the second about when the first goes or is back, or one
goes twice; some leave, after a crash or not, and join again; servers leave for good; any of these in a
row; or only groups that split and merge. In most storms somebody also stands still or is cut off for a
moment just as a process changes its state: a view change that takes a few heartbeats longer meets more
of what is said and done.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from testbed.fuzz.elements import Document, Table, rounded
from testbed.fuzz.profiles.scenes import LOSS_MOST
from testbed.protocols.daisy.tree import LEVEL, GroupTree, daisy
from testbed.protocols.groups.states import EXPECTED
from testbed.workloads.script import ScriptedMessage

PROCESSES = (3, 3, 3, 4, 4, 4, 5, 5, 6)
SCENES = ("heal", "heal", "heal", "pair", "pair", "rejoin", "row", "part")
SHAPES = (
    ("steady",) * 5 + ("single",) * 2 + ("merge",) * 4 + ("split", "split", "both", "grow", "grow")
)
RESHAPING = {"split_above", "merge_below", "max_levels"}
GROUP_SIZES = (1, 1, 2, 2, 2, 3)
DELAYS_MS: tuple[Any, ...] = (0.0, 1.0, [0.0, 1.0], [0.0, 5.0], 12.0)  # also above half a heartbeat
RATES_MBIT = (10.0, 100.0)
AT_ENDS = (8, 12)  # messages, without answers
ELSEWHERE = 6
SPEECHES = (8, 16)
MURMURS = (2, 3, 4)
SOON = 5  # heartbeats after the start
WIDTHS = (1.0, 3.0, 3.0, 6.0)  # of what is around a moment, in heartbeats
SUBSETS = (0.0, 0.0, 0.5, 1.0, 1.0)  # how many messages are to some processes only
ANSWERED = (0.0, 0.7, 1.0, 1.0, 1.0)
CHAINS = (1, 1, 2, 3)  # answers to answers
LATE = (0.1, 0.3, 0.5)  # how many packets
STRIKES = (0, 1, 1, 2)  # faults that are aimed at changes of state
VIEW_CHANGE = ("expel", "propose", "flush", "install", "install")
COUNTS = (1, 1, 2, 3, 5, 8)  # at how many of them one strikes


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


def shaped(drawn: Table, shape: str, nodes: int, rng: random.Random) -> Table:
    """Settings with small groups, which are split or merged if the shape says so, or with one group."""
    drawn = {key: value for key, value in drawn.items() if key not in RESHAPING}
    drawn["group_size"] = min(rng.choice(GROUP_SIZES), (nodes + 1) // 2)
    if shape == "single":
        return {**drawn, "group_size": nodes, "levels": 1}
    if shape != "steady":
        drawn["levels"] = max(2, drawn["levels"])
    if shape in ("split", "both", "grow"):
        drawn["split_above"] = rng.randint(2, 4)
    if shape in ("merge", "both"):
        drawn["merge_below"] = rng.randint(2, 4)
    if shape == "grow":
        drawn["max_levels"] = rng.randint(drawn["levels"], 4)
    return drawn


def noise(settings: Any, diameter: int, rng: random.Random) -> list[Table]:
    """In some storms packets are lost, or late, by a heartbeat at most: what takes long meets more."""
    drawn: list[Table] = []
    if rng.random() < 0.25:
        rate = rounded(rng.uniform(0.2, 0.9) * LOSS_MOST / diameter)
        drawn.append({"kind": "loss", "rate": rate})
    if rng.random() < 0.35:
        late = rounded(rng.uniform(0.3, 1) * settings.heartbeat_ms / diameter)
        drawn.append({"kind": "reordering", "rate": rng.choice(LATE), "late_ms": late})
    return drawn


@dataclass
class Storm:
    """Draws faults, and messages around them, for a system of some processes with these settings."""

    nodes: int
    settings: Any
    rng: random.Random

    def __post_init__(self) -> None:
        self.victims = self._victims()
        self.reshapes = self.settings.split_above is not None or self.settings.merge_below > 0

    @cached_property
    def tree(self) -> GroupTree:
        """The groups at the beginning, the server of each first."""
        s = self.settings
        return daisy(self.nodes, s.group_size, s.levels, s.split_above is not None)

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The local groups."""
        return [members for number, members in self.tree.members.items() if number < LEVEL]

    def _victims(self) -> list[int]:
        """Any three processes, or mostly those of one group, local or of servers, its server first."""
        order = self.rng.sample(range(self.nodes), self.nodes)
        if self.rng.random() < 0.8:
            groups = [*self.tree.members.values()]
            large = [group for group in groups if len(group) > 1] or groups
            group = self.rng.choice(large if self.rng.random() < 0.6 else groups)
            order.sort(key=lambda node: (node not in group, node != group[0]))
        return order[:3]

    def faults(self) -> list[Table]:
        """A scene; where groups split and merge, less of it, or nothing."""
        rng = self.rng
        scenes: dict[str, Callable[[], list[Table]]] = {
            "heal": self._heal,
            "rejoin": self._rejoin,
            "pair": self._pair,
            "row": self._row,
            "part": self._part,
        }
        drawn = scenes[rng.choice(SCENES)]()
        return drawn[: rng.choice([0, 1, len(drawn)])] if self.reshapes else drawn

    def strikes(self) -> list[Table]:
        """Somebody stands still or is cut off for a moment, just as a process changes its state."""
        rng, drawn = self.rng, list[Table]()
        for _ in range(rng.choice(STRIKES)):
            often = rng.random() < 0.6
            event = rng.choice(VIEW_CHANGE) if often else rng.choice(EXPECTED).event
            watched = {"node": rng.choice(self.victims)} if rng.random() < 0.5 else {}
            node = rng.choice(["same", rng.randrange(self.nodes)])
            cut: Table = {"kind": "partition", "nodes": node if node == "same" else [node]}
            stop: Table = {"kind": "pause", "node": node}
            struck = rng.choice([cut, stop])
            lasts = rounded(rng.uniform(0.3, 4) * self.settings.heartbeat_ms)
            when = {**watched, "event": event, "count": rng.choice(COUNTS)}
            drawn.append({**struck, "for_ms": lasts, "when": when})
        return drawn

    # messages

    def messages(self, faults: list[Table]) -> list[ScriptedMessage]:
        """All talk around the ends of these faults and other moments; or one does, or hardly any."""
        style = self.rng.choice([self._crowd, self._crowd, self._speech, self._speech, None])
        return self._murmur(faults) if style is None else style(faults) + self._returns(faults)

    def _crowd(self, faults: list[Table]) -> list[ScriptedMessage]:
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

    def _speech(self, faults: list[Table]) -> list[ScriptedMessage]:
        """One sends while somebody is away, mostly until it is back, and that one answers all of it.

        Or the one that is away sends. Where all is quiet in the end, groups are merged at once.
        """
        rng, s = self.rng, self.settings
        messages: list[ScriptedMessage] = []
        for begins, ends, subject in self._absences(faults):
            pair = [self._other(subject), subject]
            speaker, listener = pair if rng.random() < 0.75 else reversed(pair)
            first = rng.choice([begins, begins + s.patience_ms, ends - 2 * s.heartbeat_ms])
            last = ends + rng.uniform(0, 3) * s.heartbeat_ms
            if rng.random() < 0.25:
                last = rng.uniform(begins, ends)
            most, subsets = rng.choice(SPEECHES), rng.choice(SUBSETS)
            for _ in range(most):
                at = rounded(max(0.0, rng.uniform(min(first, last), last)))
                message: ScriptedMessage = {"node": speaker, "at_ms": at}
                messages.append(self._addressed(message, subject, subsets))
                answer: ScriptedMessage = {"node": listener, "answers": len(messages) - 1}
                messages.append(self._addressed(answer, subject, subsets))
        return messages

    def _murmur(self, faults: list[Table]) -> list[ScriptedMessage]:
        """A few messages as somebody goes, half of them of that one, and half of them answered."""
        rng, beat = self.rng, self.settings.heartbeat_ms
        messages: list[ScriptedMessage] = []
        for begins, _, subject in self._absences(faults):
            subsets = rng.choice(SUBSETS)
            for _ in range(rng.choice(MURMURS)):
                at = rounded(max(0.0, begins + rng.uniform(-1.5, 1.5) * beat))
                said: list[ScriptedMessage] = [{"node": self._either(subject), "at_ms": at}]
                if rng.random() < 0.5:
                    said.append({"node": self._either(subject), "answers": len(messages)})
                messages += [self._addressed(message, subject, subsets) for message in said]
        return messages

    def _either(self, subject: int) -> int:
        """The one that is struck, or any process."""
        return subject if self.rng.random() < 0.5 else self.rng.randrange(self.nodes)

    def _other(self, subject: int) -> int:
        """Another process, mostly of another group."""
        others = [node for node in range(self.nodes) if node != subject]
        far = [node for group in self.groups if subject not in group for node in group]
        return self.rng.choice(far if far and self.rng.random() < 0.7 else others)

    def _returns(self, faults: list[Table]) -> list[ScriptedMessage]:
        """Who is away sends meanwhile, as soon as it can, and when it is back."""
        rng = self.rng
        messages: list[ScriptedMessage] = []
        for begins, ends, subject in self._absences(faults) if faults else ():
            if rng.random() < 0.5:
                later = ends + rng.uniform(0, 3) * self.settings.heartbeat_ms
                for at in (rng.uniform(begins, ends), later):
                    message: ScriptedMessage = {"node": subject, "at_ms": rounded(at)}
                    messages.append(self._addressed(message, rng.randrange(self.nodes), 0.5))
        return messages

    def _absences(self, faults: list[Table]) -> list[tuple[float, float, int]]:
        """From when until when somebody is away; without faults, any time in which groups change."""
        s, rng = self.settings, self.rng
        if not faults:
            begins = rng.uniform(0, 3 * s.patience_ms)
            return [
                (begins, begins + rng.uniform(2, 6) * s.heartbeat_ms, rng.randrange(self.nodes))
            ]
        return [
            (fault["at_ms"], fault["at_ms"] + fault.get("for_ms", s.grace_ms), self._subject(fault))
            for fault in faults
        ]

    def _subject(self, fault: Table) -> int:
        return int(fault["node"] if "node" in fault else self.rng.choice(fault["nodes"]))

    def _moments(self, faults: list[Table]) -> list[tuple[float, int, int]]:
        """When there is much to say, who is struck then, and how much is said."""
        s, rng = self.settings, self.rng
        found: list[tuple[float, int, int]] = []
        for fault, absence in zip(faults, self._absences(faults) if faults else (), strict=True):
            begins, ends, subject = absence
            moment = ends if "for_ms" in fault else rng.choice([begins, ends])
            found.append((moment, subject, rng.choice(AT_ENDS)))
            if rng.random() < 0.6:
                lasts = [rng.uniform(0, ends - begins)] * 2
                later = rng.choice([0.0, s.patience_ms, s.grace_ms, *lasts])
                found.append((begins + later, subject, ELSEWHERE))
        if self.reshapes or not faults:
            times = [rng.uniform(0, SOON * s.heartbeat_ms), rng.uniform(0, 3 * s.patience_ms)]
            found += [(at, rng.randrange(self.nodes), AT_ENDS[0]) for at in times]
        return found

    def _addressed(self, message: ScriptedMessage, subject: int, subsets: float) -> ScriptedMessage:
        """To all, or to the one that is struck and some others."""
        if self.rng.random() < subsets:
            others = self.rng.sample(range(self.nodes), 2)
            message["to"] = sorted({subject, *others})
        return message

    # faults

    def _heal(self) -> list[Table]:
        """One process stands still or is cut off, or two are, or its group, up to three times."""
        rng, drawn = self.rng, list[Table]()
        one, two = self.victims[:1], sorted(self.victims[:2])
        home = next(sorted(group) for group in self.groups if one[0] in group)
        cuts = [one, one, two, home if len(home) < self.nodes else two]
        for _ in range(rng.choice([1, 1, 2, 3])):
            cut = {"kind": "partition", "nodes": rng.choice(cuts)}
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

    def _part(self) -> list[Table]:
        """One or two leave, mostly for good, while much is on its way through them."""
        rng, drawn = self.rng, list[Table]()
        for node in self.victims[: rng.choice([1, 1, 2])]:
            drawn.append(self._lasting({"kind": "leave", "node": node}, drawn))
            if rng.random() < 0.7:
                del drawn[-1]["for_ms"]
        return drawn

    def _pair(self) -> list[Table]:
        """Two go, in many storms only for a moment, the second about when the first goes or is back.

        Or both are one process, which goes again while it is away, or has hardly come back.
        """
        rng, beat = self.rng, self.settings.heartbeat_ms
        one, two = rng.sample(self.victims[:2], 2)
        if again := rng.random() < 0.4:
            two = one
        first = self._lasting(self._away(one), [])
        second = self._lasting(self._away(two), [])
        if not again and rng.random() < 0.4:
            first["for_ms"], second["for_ms"] = (rounded(rng.uniform(0.3, 4) * beat) for _ in "12")
        begins, ends = first["at_ms"], first["at_ms"] + first["for_ms"]
        about = rng.choice([ends, rng.uniform(begins, ends)] if again else [begins, ends])
        about += rng.uniform(-2, 2) * beat
        return [first, {**second, "at_ms": rounded(max(0.0, about))}]

    def _away(self, node: int) -> Table:
        leaves: Table = {"kind": "leave", "node": node}
        cut: Table = {"kind": "partition", "nodes": [node]}
        return self.rng.choice([leaves, leaves, cut, cut, {"kind": "pause", "node": node}])

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
        if not faults:  # groups are first split and merged soon after the start
            most = rng.choice([1, SOON, s.patience_ms / s.heartbeat_ms])
            return rounded(rng.uniform(0, most) * s.heartbeat_ms)
        ends = [fault["at_ms"] + fault.get("for_ms", 0.0) for fault in faults]
        most = rng.choice([3 * s.heartbeat_ms, 1.5 * s.patience_ms, 1.5 * s.grace_ms])
        return rounded(rng.choice(ends) + rng.uniform(0, most))
