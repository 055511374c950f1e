"""What happens to the members of a group, in scenes that fit its timeouts, and when they send then.

- mixed: any faults at any time;
- heal: a few processes are cut off, mostly again and again, for so long that they are suspected or
  others take their place, and return; short pauses between let heartbeats meet in other phases, on
  which it depends which of two view changes is over first;
- rejoin: one crashes, then others leave one after the other, and most of them join again;
- aimed: something makes the view change, and a fault strikes in the middle of it.

Messages are sent throughout, or near a few moments, while somebody is away or as a view changes: when
a fault begins or ends, and a patience or a grace later.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from testbed.experiment.network import Network
from testbed.fuzz.elements import (
    MOST_CRASHES,
    Aims,
    Table,
    any_link,
    onset,
    rounded,
    trigger,
)

LOSS_MOST = 0.05  # of the packets from one process to another, for an unlimited time
DUPLICATION_MOST = 0.3
MOST_PERIODS = 5  # faults other than light loss and crashes
SCENES = ("mixed",) * 2 + ("heal",) * 4 + ("rejoin",) * 3 + ("aimed",)
MOST_MOMENTS = 3
MOST_LEAVES = 5
RETURNS = (1, 2, 4)  # how often somebody is cut off and back


@dataclass(frozen=True)
class Scenes:
    """Draws faults whose lengths fit the timeouts of a group layer."""

    settings: Any
    network: Network
    span_ms: float  # in which they begin
    aims: Aims
    actors: Sequence[int]  # who gets and answers the most: faults of these matter the most
    rng: random.Random

    @property
    def diameter(self) -> int:
        """How many links a packet may cross."""
        return nx.diameter(self.network.graph)

    def draw(self, scene: str) -> list[Table]:
        """The faults of one scene."""
        scenes = {
            "mixed": self._mixed,
            "heal": self._heal,
            "rejoin": self._rejoin,
            "aimed": self._aimed,
        }
        drawn = scenes[scene]()
        if self.rng.random() < 0.3:
            rate = rounded(self.rng.uniform(0, LOSS_MOST / self.diameter))
            drawn.append({"kind": "loss", "rate": rate})
        return drawn

    def _mixed(self) -> list[Table]:
        drawn = [self._period() for _ in range(self.rng.randint(0, MOST_PERIODS))]
        count = self.rng.choice([0, *range(MOST_CRASHES + 1)])
        return drawn + [self._crash() for _ in range(count)]

    def _heal(self) -> list[Table]:
        rng, beat = self.rng, self.settings.heartbeat_ms
        drawn, cut, at = [], self._cut(), self._upto(self.span_ms)
        for _ in range(rng.choice(RETURNS)):
            away = self._absence()
            drawn.append({**cut, "at_ms": rounded(at), "for_ms": away})
            at += away + rng.uniform(3, 15) * beat
            if rng.random() < 0.5:  # from now on heartbeats meet in another way
                pause = {"kind": "pause", "node": self._actor(), "for_ms": self._brief(beat)}
                drawn.append({**pause, "at_ms": rounded(max(0.0, at - 2 * beat))})
            if rng.random() < 0.3:
                cut = self._cut()
        return drawn

    def _rejoin(self) -> list[Table]:
        rng, s = self.rng, self.settings
        crashed, at = self._actor(), self._upto(self.span_ms)
        drawn: list[Table] = [{"kind": "crash", "node": crashed, "at_ms": at}]
        if rng.random() < 0.2:
            drawn[0]["for_ms"] = self._absence()
        for node in {self._actor() for _ in range(rng.randint(2, MOST_LEAVES))} - {crashed}:
            at = rounded(at + rng.uniform(0, s.patience_ms + s.grace_ms))
            drawn.append({"kind": "leave", "node": node, "at_ms": at})
            if rng.random() < 0.8:
                away = [self._absence(), self._absence(), self._brief(3 * s.heartbeat_ms)]
                drawn[-1]["for_ms"] = rng.choice(away)
        return drawn

    def _aimed(self) -> list[Table]:
        rng = self.rng
        drawn = rng.choice([self._heal, self._rejoin])()
        for _ in range(rng.randint(1, 2)):
            struck = rng.choice([self._cut, self._member])()
            if struck["kind"] != "link-down" and rng.random() < 0.6:
                struck |= {key: "same" for key in ("node", "nodes") if key in struck}
            struck["when"] = trigger(self.network, self.aims, rng)
            if struck["kind"] not in ("crash", "leave") or rng.random() < 0.4:
                struck["for_ms"] = self._absence()
            drawn.append(struck)
        return drawn

    def _cut(self) -> Table:
        """Cut few processes off, or stop one."""
        rng, nodes = self.rng, self._nodes
        few = {self._actor(), *rng.sample(nodes, rng.randint(0, min(2, len(nodes) - 2)))}
        return rng.choice(
            [
                *[{"kind": "partition", "nodes": [self._actor()]}] * 4,
                {"kind": "partition", "nodes": sorted(few)},
                {"kind": "pause", "node": self._actor()},
                {"kind": "link-down", "link": any_link(self.network, rng)},
            ]
        )

    def _member(self) -> Table:
        return {"kind": self.rng.choice(["crash", "leave"]), "node": self._actor()}

    def _period(self) -> Table:
        """A fault for a while, or one that all links bear all the time."""
        rng, nodes = self.rng, self._nodes
        node, inside = rng.choice(nodes), rng.sample(nodes, rng.randint(1, len(nodes) - 1))
        return rng.choice(
            [
                {"kind": "duplication", "rate": self._upto(DUPLICATION_MOST / self.diameter)},
                {"kind": "reordering", "rate": self._upto(0.5),
                 "late_ms": self._upto(self.settings.heartbeat_ms / self.diameter)},
                {"kind": "slow", "factor": rounded(rng.uniform(1, 50)),
                 "link": any_link(self.network, rng), **self._while()},
                {"kind": "loss", "rate": self._upto(0.5), **self._while()},
                {"kind": "pause", "node": node, **self._while()},
                {"kind": "link-down", "link": any_link(self.network, rng), **self._while()},
                {"kind": "partition", "nodes": sorted(inside), **self._while()},
                {"kind": "leave", "node": node, "at_ms": self._upto(self.span_ms)},
                {"kind": "leave", "node": node, **self._while()},
            ]
        )  # fmt: skip

    def _crash(self) -> Table:
        """A crash for good, or for a while."""
        rng, s = self.rng, self.settings
        crash: Table = {"kind": "crash", "node": rng.choice(self._nodes)}
        crash |= onset(self.network, self.span_ms, self.aims, rng)
        if rng.random() < 0.5:
            longest = rng.choice([s.patience_ms, 2 * s.grace_ms])
            crash["for_ms"] = rounded(rng.uniform(1, longest))
        return crash

    def _actor(self) -> int:
        if self.actors and self.rng.random() < 0.8:
            return self.rng.choice(self.actors)
        return self.rng.choice(self._nodes)

    @property
    def _nodes(self) -> range:
        return range(self.network.processes)

    def _brief(self, most: float) -> float:
        return rounded(self.rng.uniform(0.1, most))

    def _upto(self, most: float) -> float:
        return rounded(self.rng.uniform(0, most))

    def _absence(self) -> float:
        """About long enough to be suspected, or until others have taken one's place."""
        s = self.settings
        if self.rng.random() < 0.3:
            return rounded(self.rng.uniform(0.5, 1.5) * s.patience_ms)
        return rounded(self.rng.uniform(s.patience_ms, 1.3 * s.grace_ms))

    def _while(self) -> Table:
        patience, grace = self.settings.patience_ms, self.settings.grace_ms
        longest = self.rng.choice([patience / 2, 2 * patience, grace, 2 * grace])
        at = self._upto(self.span_ms)
        return {"at_ms": at, "for_ms": rounded(self.rng.uniform(0.1, longest))}


def near(faults: Sequence[Table], settings: Any, rng: random.Random) -> Callable[[], float]:
    """Draws times near a few moments of these faults, or at any time while they last."""
    timed = [fault for fault in faults if "at_ms" in fault]
    away = [fault for fault in timed if "for_ms" in fault]
    moments = [_moment(fault, settings, rng) for fault in away or timed] or [0.0]
    first = min((float(fault["at_ms"]) for fault in timed), default=0.0)
    last = max((fault["at_ms"] + fault.get("for_ms", 0.0) for fault in timed), default=0.0)
    chosen = rng.sample(moments, rng.randint(1, min(MOST_MOMENTS, len(moments))))
    width = rng.choice([0.1, 1.0, 5.0]) * settings.heartbeat_ms
    end = max(last + settings.patience_ms, first + 2 * settings.grace_ms)  # groups merge meanwhile
    throughout = rng.choice([0.0, 0.2, 1.0])

    def when() -> float:
        if rng.random() < throughout:
            return rng.uniform(first, end)
        return rng.choice(chosen) + rng.uniform(0, width)

    return when


def _moment(fault: Table, settings: Any, rng: random.Random) -> float:
    """When much may happen on account of a fault."""
    begins, lasts = float(fault["at_ms"]), float(fault.get("for_ms", settings.grace_ms))
    later = rng.choice([0.0, lasts, lasts, settings.patience_ms, settings.grace_ms])
    return begins + float(rng.choice([later, *[rng.uniform(0, lasts)] * 2]))
