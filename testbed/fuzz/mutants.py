"""Mutants of an experiment: messages and faults meet at the moments that its run has shown.

Most mistakes show only if two or three things happen within a heartbeat: a message is answered while a
view is installed, a process leaves while another is admitted. When such a moment comes cannot be
drawn, but the log of a run tells it, and a run that differs only from then on comes to it again. So a
mutant takes moments of a run, a rare kind as often as a frequent one, and has few processes send and
answer around them, also to those that faults strike. Before that, half of the mutants

- stop a process at a moment, cut it off, let it crash, or leave and return;
- move a fault so that it begins or ends there, or leave one out;
- or draw again how heartbeats meet.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.check import Event
from testbed.fuzz.elements import Document, Table, rounded
from testbed.fuzz.messages import script_among, stream, triangles
from testbed.protocols import NS_PER_MS
from testbed.workloads.script import ScriptedMessage, without

MOST_KEPT = 24  # messages of the experiment before
LENGTHS = (4, 8, 16)  # messages that are added, or that a stream has
MOST_ACTORS = 5
STREAMS = (2.0, 4.0, 6.0)  # heartbeats
WIDTHS = (0.05, 0.5, 1.0, 3.0)  # of what is around a moment, in heartbeats
SEEDS = 2**16
COMING_AND_GOING = ("crash", "restart", "leave", "join")
STRIKES = ("pause", "partition", "partition", "leave", "leave", "crash")


class Moment(NamedTuple):
    """When a process changed its state, crashed, left or came back."""

    at_ms: float
    node: int
    what: str


def moments(events: Mapping[int, Sequence[Event]]) -> tuple[Moment, ...]:
    """The moments that the logs of a run show, and the start of each process."""
    found = [Moment(0.0, node, "start") for node in events]
    for node, log in events.items():
        for event in log:
            facts = event.facts or {}
            if event.event in COMING_AND_GOING or {"state", "next"} <= facts.keys():
                what = f"{event.event} {facts.get('state')} {facts.get('group')}"
                found.append(Moment(event.t / NS_PER_MS, node, what))
    return tuple(found)


@dataclass(frozen=True)
class Mutation:
    """Changes an experiment of a protocol that has heartbeats, given the moments of its run."""

    nodes: int
    moments: Sequence[Moment]
    rng: random.Random

    def of(self, document: Document) -> Document:
        """A mutant of an experiment, which may be beyond what its protocol promises."""
        if self.rng.random() < 0.5:
            change = self.rng.choice([self._strike, self._move, self._drop, self._reseed])
            document = change(document)
        return self._talk(document)

    def _talk(self, document: Document) -> Document:
        """Let few processes send and answer around some moments, beside or instead of others."""
        rng, send = self.rng, document["workload"]["send"]
        style = rng.choice([self._stream, self._triangles, self._any])
        share = min(rng.choice([0.0, 0.5, 1.0]), MOST_KEPT / len(send))
        kept = without(send, [n for n in range(len(send)) if rng.random() >= share])
        fresh = _renumbered(style(document), len(kept))
        return {**document, "workload": {**document["workload"], "send": [*kept, *fresh]}}

    def _stream(self, document: Document) -> list[ScriptedMessage]:
        """One moment, a few heartbeats of messages around it, and answers of who is struck there."""
        moment, rng = self._moment(), self.rng
        width = rng.choice(STREAMS) * _beat(document)
        answerers = {moment.node, *rng.sample(struck := _struck(document), min(2, len(struck)))}
        others = [node for node in range(self.nodes) if node not in answerers] or [moment.node]

        def when() -> float:
            return max(0.0, moment.at_ms + rng.uniform(-0.5, 0.5) * width)

        return stream(rng.choice(others), sorted(answerers), 2 * rng.choice(LENGTHS), when)

    def _triangles(self, document: Document) -> list[ScriptedMessage]:
        """What is sent to those that faults strike, or to some of them and others, is answered."""
        rng, actors = self.rng, self._actors(document)
        some = rng.sample(actors, rng.randint(1, min(3, len(actors))))
        far = {*(_struck(document) if rng.random() < 0.5 else some)} or {*some}
        return triangles([*far], self.nodes, rng.choice(LENGTHS), self._times(document), rng)

    def _any(self, document: Document) -> list[ScriptedMessage]:
        when = self._times(document)
        most = self.rng.choice(LENGTHS)
        return script_among(self._actors(document), self.nodes, most, when, self.rng)

    def _times(self, document: Document) -> Callable[[], float]:
        """Times around some moments, or around one; or while faults last."""
        rng, width = self.rng, self.rng.choice(WIDTHS) * _beat(document)
        near = self._moment() if rng.random() < 0.3 else None
        lasting = [fault for fault in document["fault"] if "at_ms" in fault]
        while_ = rng.choice([0.0, 0.5]) if lasting else 0.0

        def when() -> float:
            if rng.random() < while_:
                fault = rng.choice(lasting)
                lasts = fault.get("for_ms", document["protocol"]["grace_ms"])
                return float(fault["at_ms"] + rng.uniform(0, lasts))
            return max(0.0, (near or self._moment()).at_ms + rng.uniform(-1, 0.5) * width)

        return when

    def _actors(self, document: Document) -> list[int]:
        """A few processes: those that faults strike, some at which something happened, any other."""
        drawn = [*_struck(document), self._moment().node, self._moment().node]
        drawn.append(self.rng.randrange(self.nodes))
        self.rng.shuffle(drawn)
        return list(dict.fromkeys(drawn))[:MOST_ACTORS]

    def _strike(self, document: Document) -> Document:
        """Let something happen to a process at a moment, mostly to the one whose moment it is."""
        rng, moment = self.rng, self._moment()
        node = moment.node if rng.random() < 0.7 else rng.randrange(self.nodes)
        kind = rng.choice(STRIKES)
        fault: Table = {"kind": kind, "at_ms": self._near(moment, document)}
        fault |= {"nodes": [node]} if kind == "partition" else {"node": node}
        if kind not in ("crash", "leave") or rng.random() < 0.7:
            fault["for_ms"] = self._absence(document)
        return {**document, "fault": [*document["fault"], fault]}

    def _move(self, document: Document) -> Document:
        """Let a fault begin or end at a moment."""
        rng, faults = self.rng, document["fault"]
        timed = [index for index, fault in enumerate(faults) if "at_ms" in fault]
        if not timed:
            return self._strike(document)
        index, at = rng.choice(timed), self._near(self._moment(), document)
        moved = {**faults[index], "at_ms": at}
        lasts = rounded(at - faults[index]["at_ms"])
        if "for_ms" in moved and lasts > 0.1 and rng.random() < 0.5:
            moved = {**faults[index], "for_ms": lasts}
        return {**document, "fault": [*faults[:index], moved, *faults[index + 1 :]]}

    def _drop(self, document: Document) -> Document:
        """Leave a fault out."""
        gone = self.rng.randrange(len(document["fault"]) + 1)
        rest = [fault for index, fault in enumerate(document["fault"]) if index != gone]
        return {**document, "fault": rest}

    def _reseed(self, document: Document) -> Document:
        """Draw again how heartbeats meet, and what else follows from the seed."""
        return {**document, "seed": self.rng.randrange(1, SEEDS)}

    def _moment(self) -> Moment:
        what = self.rng.choice(sorted({moment.what for moment in self.moments}))
        return self.rng.choice([moment for moment in self.moments if moment.what == what])

    def _near(self, moment: Moment, document: Document) -> float:
        width = self.rng.choice(WIDTHS) * _beat(document)
        return rounded(max(0.0, moment.at_ms + self.rng.uniform(-1, 1) * width))

    def _absence(self, document: Document) -> float:
        """A few heartbeats, or long enough to be suspected or replaced."""
        settings, beat = document["protocol"], _beat(document)
        most = self.rng.choice([beat, 3 * beat, settings["patience_ms"], settings["grace_ms"]])
        return rounded(max(0.1, self.rng.uniform(0.1, 1.3) * most))


def _struck(document: Document) -> list[int]:
    """The processes that faults name."""
    named = [(fault.get("node"), *fault.get("nodes", ())) for fault in document["fault"]]
    return [node for some in named for node in some if isinstance(node, int)]


def _beat(document: Document) -> float:
    return float(document["protocol"]["heartbeat_ms"])


def _renumbered(messages: Sequence[ScriptedMessage], first: int) -> list[ScriptedMessage]:
    return [
        {**line, "answers": line["answers"] + first} if "answers" in line else line
        for line in messages
    ]
