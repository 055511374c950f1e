"""When and to whom something may happen in a mutant, by what the run of its parent has shown."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.check import Event
from testbed.fuzz.elements import Document, Table, nodes_of, rounded
from testbed.protocols import NS_PER_MS
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.tree import LEVEL, daisy

WIDTHS = (0.05, 0.5, 1.0, 3.0)  # of what is around a time, in heartbeats
ANCHORS = (*["moment"] * 2, *["begin"] * 2, *["end"] * 3, "later", "send")
COMING_AND_GOING = ("crash", "restart", "leave", "join")


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
class Scope:
    """Draws times and processes for the changes of an experiment of a daisy."""

    document: Document
    moments: Sequence[Moment]  # of its parent's run; none, if that was not run
    focus: float | None  # around which most of the changes are
    rng: random.Random

    @property
    def nodes(self) -> int:
        """How many processes there are."""
        return nodes_of(self.document)

    @property
    def beat(self) -> float:
        """The time between two heartbeats."""
        return float(self.document["protocol"]["heartbeat_ms"])

    @property
    def timed(self) -> list[Table]:
        """The faults that begin at a time."""
        return [fault for fault in self.document["fault"] if "at_ms" in fault]

    @property
    def struck(self) -> list[int]:
        """The processes that faults name."""
        return [node for fault in self.document["fault"] for node in subjects(fault)]

    def span(self, fault: Table) -> tuple[float, float]:
        """When a fault begins, and when it ends or others have taken the place of who is gone."""
        lasts = fault.get("for_ms", self.document["protocol"]["grace_ms"])
        return float(fault["at_ms"]), float(fault["at_ms"] + lasts)

    def moment(self) -> Moment:
        """A moment of the run, a rare kind as often as a frequent one."""
        what = self.rng.choice(sorted({moment.what for moment in self.moments}))
        return self.rng.choice([moment for moment in self.moments if moment.what == what])

    def near(self, at_ms: float) -> float:
        """A time within a few heartbeats of another."""
        width = self.rng.choice(WIDTHS) * self.beat
        return rounded(max(0.0, at_ms + self.rng.uniform(-1, 1) * width))

    def time(self) -> float:
        """A time near the focus, or near anything that happens."""
        focused = self.focus is not None and self.rng.random() < 0.6
        return self.near(self.focus if focused and self.focus is not None else self.anchor())

    def anchor(self) -> float:
        """When a process changed its state, a fault begins or ends, or a message is sent."""
        rng, settings = self.rng, self.document["protocol"]
        kind = rng.choice(ANCHORS)
        if kind == "moment" and self.moments:
            return self.moment().at_ms
        if kind == "send" or not self.timed:
            send = self.document["workload"]["send"]
            return float(rng.choice([line["at_ms"] for line in send if "at_ms" in line]))
        begins, ends = self.span(rng.choice(self.timed))
        if kind == "later":
            after = rng.choice([settings["patience_ms"], settings["grace_ms"]])
            return float(rng.choice([begins, ends]) + after)
        return begins if kind == "begin" else ends

    def process(self) -> int:
        """A process that a fault strikes, or any."""
        if (struck := self.struck) and self.rng.random() < 0.5:
            return self.rng.choice(struck)
        return self.any()

    def any(self) -> int:
        """Any process, often one that is the server of a local group at the beginning."""
        if self.rng.random() >= 0.4:
            return self.rng.randrange(self.nodes)
        s = self.document["protocol"]
        size, levels = (
            s.get(key, getattr(Daisy.Settings, key)) for key in ("group_size", "levels")
        )
        tree = daisy(self.nodes, size, levels, "split_above" in s)
        return self.rng.choice([m[0] for number, m in tree.members.items() if number < LEVEL])

    def absence(self) -> float:
        """A few heartbeats, or long enough to be suspected or replaced."""
        settings, beat = self.document["protocol"], self.beat
        most = self.rng.choice([beat, 3 * beat, settings["patience_ms"], settings["grace_ms"]])
        return rounded(max(0.1, self.rng.uniform(0.1, 1.3) * most))


def subjects(fault: Table) -> list[int]:
    """The processes that a fault strikes."""
    named = fault.get("nodes", [fault.get("node")])
    return [node for node in named if isinstance(node, int)]
