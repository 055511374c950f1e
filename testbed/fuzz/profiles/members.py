"""The daisy, which keeps members and repairs what faults do to them.

A scene is drawn first (``scenes``), then settings and faults for it until they are within the limits,
so that no scene is rare because few settings allow it. A few processes, servers among them, are the
actors: most faults strike them, and most messages are from and to them, about one a heartbeat.
Timeouts fit the network, and faults fit these, so that processes are suspected, expelled and admitted
again, and groups split and merge, while messages flow. In some experiments, when all faults are over
and there was time to repair their effects, some processes send once more: these messages must arrive
everywhere. Most systems are small: what goes wrong in a large one mostly goes wrong in one of two or
three groups, whose run takes a tenth of the time.

The daisy has limits, which all trials respect (``promised``):

- Relaying is ``safe``, or nobody crashes, leaves or is cut off. Where not all members of a group get a
  message, fewer may be gone: one, or at most ``resilience``; then nobody is cut off as well, nor
  anybody for ``grace_ms`` or longer. Except for short periods, packets are delayed or lost so seldom
  that views last: where some packets are late and others are not, by at most a heartbeat on the whole
  way. And ``patience_ms`` is longer than a round trip, over all links on which everything is late.
- A process that was cut off for longer than ``grace_ms`` and is gone before it is back leaves a gap. So
  where anybody crashes or leaves, all periods in which processes are cut off are shorter than that,
  taken together. So they are where levels grow: two parts that both split groups may not meet again.
- Nobody is cut off for ``forget_ms`` or longer. Links are slow once at most: two slow periods at a time
  would delay a packet far beyond the end of both.
- A view of servers that crashes as a whole, with a local group, leaves a gap. So if all members of a
  local group are gone at some time, crashed or left, then nobody was cut off, and one of the first
  members of each group of servers stays. Where groups are split and merged, fewer processes are gone
  than the smallest group can have, or one at most.
- The last member of a local group does not leave where groups are merged.
- Over the reliable channel nobody crashes or leaves: a process that waits for an acknowledgement of one
  that is gone cannot send more for long. The channel retransmits within half of ``patience_ms``: all
  that follows a lost packet, heartbeats too, waits for it.
"""

import random
from collections.abc import Iterator
from typing import Any, ClassVar

import networkx as nx
from typing_extensions import override

from testbed.experiment import Experiment, Scenario
from testbed.experiment.network import Network
from testbed.experiment.seeds import stream
from testbed.faults import (
    Crash,
    Duplication,
    Fault,
    Leave,
    LinkDown,
    Loss,
    Pause,
    RatedFault,
    Reordering,
    Slow,
)
from testbed.fuzz import elements
from testbed.fuzz.elements import Document, Members, Table, rounded
from testbed.fuzz.messages import script_among
from testbed.fuzz.priorities import change_points
from testbed.fuzz.profiles.plain import Profile, resolved
from testbed.fuzz.profiles.scenes import (
    DUPLICATION_MOST,
    LOSS_MOST,
    SCENES,
    Scenes,
    near,
)
from testbed.fuzz.profiles.storms import SHAPES, Storm, calm, noise, shaped
from testbed.plugins import reference
from testbed.protocols.daisy.tree import LEVEL, daisy
from testbed.workloads.script import ScriptedMessage

HEARTBEATS_MS = (10.0, 20.0)
DELAYS_MS: tuple[Any, ...] = (0.0, 1.0, [0.0, 1.0], [0.0, 5.0], [0.0, 5.0])
RATES_MBIT: tuple[Any, ...] = (10.0, 10.0, 1000.0, [10.0, 100.0])
LEAST_MESSAGES, MOST_MESSAGES = 8, 120
DENSITIES = (0.3, 0.7, 1.0)  # messages a heartbeat
REDRAWS = 12  # of what is beyond the limits, before some faults are left out
STORM_SEEDS = 2**16
CHANNEL_RETRIES = 100  # longer than any fault lasts
DEFAULT: Table = {"safe": True, "early": False, "inside": "all"}
VARIANTS: tuple[Table, ...] = (
    *[DEFAULT] * 9,
    DEFAULT | {"safe": False, "early": True},
    DEFAULT | {"inside": "server"},
    DEFAULT | {"inside": "recipients", "resilience": 1},
    DEFAULT | {"inside": "recipients", "resilience": 2},
)


class MembersProfile(Profile):
    """Draws settings, messages and faults for the daisy, mostly with several groups."""

    least: ClassVar[tuple[int, ...]] = (2, 3, 4)
    sizes: ClassVar[tuple[int, ...]] = (5,) * 8 + (6,) * 6 + (8,) * 5 + (32,)
    mutants: ClassVar[int] = 1
    storms: ClassVar[int] = 4
    scenes: ClassVar[int] = 4
    variations: ClassVar[int] = 3

    @override
    def settled(self, document: Document) -> Document:
        table = {key: value for key, value in document["protocol"].items() if key != "name"}
        try:
            settle_ms = self.repair_ms(self.protocol.Settings(**table))
        except ValueError:
            return document  # it is refused
        return {**document, "workload": {**document["workload"], "settle_ms": settle_ms}}

    @override
    def reliable(self, rng: random.Random) -> bool:
        super().reliable(rng)
        return False  # for now: ``finish`` draws the channel, which depends on the settings

    @override
    def settings(self, rng: random.Random) -> Table:
        return {}  # for now: ``finish`` draws them, to fit the network

    def fitting(self, network: Network, variant: Table, rng: random.Random) -> Table:
        """Settings that fit the network."""
        return _settings(network, variant, rng)

    @override
    def links(self, nodes: int, reliable: bool, rng: random.Random) -> Table:
        """Fast enough for many heartbeats."""
        rate = rng.choice(RATES_MBIT if nodes <= elements.SMALL else [1000.0])
        return {"delay_ms": rng.choice(DELAYS_MS), "bandwidth_mbit": rate}

    @override
    def messages(self, nodes: int, groups: Members, rng: random.Random) -> list[ScriptedMessage]:
        return [{"node": 0, "at_ms": 0.0}]  # for now: ``finish`` draws them, to fit the faults

    @override
    def finish(self, document: Document, rng: random.Random) -> None:
        """Draw a scene, then settings and faults for it until they are within the limits."""
        workload, network = document["workload"], resolved(document).network
        aimed = self.aims.events and rng.random() < self.aims.share
        scene, variant = "aimed" if aimed else rng.choice(SCENES), rng.choice(VARIANTS)
        for _ in range(REDRAWS):
            document["protocol"] = {
                "name": self.protocol.name,
                **self.fitting(network, variant, rng),
            }
            settings = resolved(document).experiment.settings
            workload["settle_ms"] = self.repair_ms(settings)
            actors = self.actors(network.processes, settings, rng)
            span = rng.choice([0, settings.patience_ms, settings.grace_ms])
            document["fault"] = Scenes(settings, network, span, self.aims, actors, rng).draw(scene)
            if self.promised(resolved(document)):
                break
        document["channel"] = _channel(settings, rng)
        self._keep_promised(document, rng)
        when = near(document["fault"], settings, rng)
        end = max(_end_ms(resolved(document).experiment), 2 * settings.grace_ms)
        beats = end / settings.heartbeat_ms
        most = min(max(LEAST_MESSAGES, round(rng.choice(DENSITIES) * beats)), MOST_MESSAGES)
        workload["send"] = script_among(actors, network.processes, most, when, rng)
        if rng.random() < 0.3:
            document["fault"] += self._change_points(resolved(document), rng)
            self._keep_promised(document, rng)
        workload["send"] += self._closing_messages(resolved(document), rng)

    @override
    def storm(self, seed: int, number: int) -> Document:
        """A small system, and settings and faults for it until they are within the limits."""
        rng = stream(seed, "storm", self.protocol.name, number)
        document = calm(rng)
        document["name"] = f"fuzz-{self.protocol.name}-{seed}-storm-{number}"
        document["seed"] = rng.randrange(1, STORM_SEEDS)
        document["protocol"] = {"name": reference(self.protocol)}
        network = resolved(document).network
        variant = rng.choice(VARIANTS) if rng.random() < 0.1 else DEFAULT
        shape = rng.choice(SHAPES) if variant is DEFAULT else "steady"
        for _ in range(REDRAWS):
            drawn = shaped(self.fitting(network, variant, rng), shape, network.processes, rng)
            document["protocol"] = {"name": reference(self.protocol), **drawn}
            settings = self.protocol.Settings(**drawn)
            document["workload"]["settle_ms"] = self.repair_ms(settings)
            storm = Storm(network.processes, settings, rng)
            document["fault"] = [*storm.faults(), *storm.strikes()]
            if self.promised(resolved(document)):
                break
        self._keep_promised(document, rng)
        timed = [fault for fault in document["fault"] if "at_ms" in fault]
        document["workload"]["send"] = storm.messages(timed)
        document["fault"] += noise(settings, nx.diameter(network.graph), rng)
        self._keep_promised(document, rng)
        return document

    def actors(self, processes: int, settings: Any, rng: random.Random) -> list[int]:
        """A few processes to whom most happens: of two groups, with their servers, and any others."""
        s = settings
        tree = daisy(processes, s.group_size, s.levels, s.split_above is not None)
        local = [members for number, members in tree.members.items() if number < LEVEL]
        drawn = [rng.randrange(processes)]
        for members in rng.sample(local, min(2, len(local))):
            drawn += [members[0], *rng.sample(members[1:], min(2, len(members) - 1))]
        rng.shuffle(drawn)
        return list(dict.fromkeys(drawn))

    def _keep_promised(self, document: Document, rng: random.Random) -> None:
        """Leave out faults until the rest is within the limits."""
        while not self.promised(resolved(document)):
            document["fault"].remove(rng.choice(document["fault"]))

    def _change_points(self, scenario: Scenario, rng: random.Random) -> list[Table]:
        s, network = scenario.experiment.settings, scenario.network
        steps = len(scenario.experiment.workload.send) * network.processes  # type: ignore[attr-defined]
        spare = s.patience_ms - _least_patience_ms(network, s.heartbeat_ms)
        return change_points(network, steps, min(s.heartbeat_ms, spare / 4), False, rng)

    @override
    def promised(self, scenario: Scenario) -> bool:
        """Whether the experiment is within the limits of the daisy, see above."""
        experiment, network = scenario.experiment, scenario.network
        s, drawn = experiment.settings, experiment.faults
        diameter = nx.diameter(network.graph)
        if s.patience_ms < _least_patience_ms(network, s.heartbeat_ms) + 2 * _late_ms(scenario):
            return False
        if (
            experiment.workload.settle_ms < self.repair_ms(s)
            or _jitter_ms(scenario) > s.heartbeat_ms
        ):
            return False
        if any(f.per_s is not None or not _bearable(f, s.heartbeat_ms, diameter) for f in drawn):
            return False
        if sum(isinstance(fault, Slow) for fault in drawn) > 1:
            return False
        cut = sum(fault.for_ms or 0 for fault in drawn if _cuts_off(fault))
        going = [fault for fault in drawn if isinstance(fault, Crash | Leave)]
        gone = max(elements.losses(going, network.processes), key=len)
        if cut >= (s.grace_ms if gone or s.max_levels else s.forget_ms):
            return False
        if experiment.channel and (gone or experiment.channel.max_rto_ms > 0.6 * s.patience_ms):
            return False
        if len(gone) > _most_gone(s, network.processes):
            return False
        if s.inside != "all" and cut and (gone or cut >= s.grace_ms):
            return False
        if not s.safe and cut:
            return False
        left = any(isinstance(fault, Leave) for fault in drawn)
        return all(
            _groups_survive(network.processes, s, gone, left, cut > 0)
            for gone in elements.losses(going, network.processes)
        )

    @override
    def repair_ms(self, settings: Any) -> float:
        once = 3 * settings.grace_ms + 40 * settings.heartbeat_ms  # level by level, if they grow
        return float(once * max(1, settings.max_levels - 1))

    def _closing_messages(self, scenario: Scenario, rng: random.Random) -> list[ScriptedMessage]:
        """Messages of some processes, or of all, when everything is repaired, and an answer."""
        if rng.random() < 0.7:
            return []
        experiment, nodes = scenario.experiment, scenario.network.processes
        first = len(experiment.workload.send)  # type: ignore[attr-defined]
        at = rounded(_end_ms(experiment) + 1.2 * self.repair_ms(experiment.settings))
        senders = sorted(rng.sample(range(nodes), rng.randint(1, nodes)))
        messages: list[ScriptedMessage] = [{"node": node, "at_ms": at} for node in senders]
        answerer, answered = rng.randrange(nodes), first + rng.randrange(len(senders))
        return [*messages, {"node": answerer, "answers": answered}]


def _settings(network: Network, variant: Table, rng: random.Random) -> Table:
    """Small groups on any number of levels; in some trials they are split and merged."""
    heartbeat = rng.choice(HEARTBEATS_MS)
    patience = max(
        rng.choice([3.5, 3.5, 5, 10]) * heartbeat, _least_patience_ms(network, heartbeat)
    )
    drawn: Table = {
        "group_size": rng.choice([1, 2, 2, 2, 2, 3, 3, 4, 5]),
        "levels": rng.choice([1, 2, 2, 2, 2, 2, 2, 3, 4]),
        "heartbeat_ms": heartbeat,
        "patience_ms": rounded(patience),
        "grace_ms": rounded(rng.choice([2, 3]) * patience),
        "ack_ms": rng.choice([0.0, 1.0, 5.0]),
    }
    drawn |= variant
    if drawn["levels"] > 1:  # there should be several groups
        drawn["group_size"] = min(drawn["group_size"], max(1, (network.processes + 1) // 2))
    if drawn["early"]:
        drawn["levels"] = 2
    if drawn["levels"] > 1 and drawn["safe"] and drawn["inside"] == "all" and rng.random() < 0.5:
        how = rng.choice(["split", "merge", "both"])
        if how != "merge":
            drawn["split_above"] = rng.randint(2, 5)
            if rng.random() < 0.5:  # levels grow
                drawn["max_levels"] = rng.randint(drawn["levels"], 4)
        if how != "split":
            drawn["merge_below"] = rng.randint(2, 4)
    return drawn


def _channel(settings: Any, rng: random.Random) -> Table | str:
    """Mostly raw; a reliable one retransmits soon enough for the heartbeats above it."""
    if rng.random() < 0.85:
        return "raw"
    soon = rounded(settings.patience_ms / 2)
    timeouts = dict.fromkeys(("min_rto_ms", "initial_rto_ms", "max_rto_ms"), soon)
    return {"model": "reliable", "retries": CHANNEL_RETRIES, **timeouts}


def _groups_survive(processes: int, s: Any, gone: frozenset[int], left: bool, cut: bool) -> bool:
    tree = daisy(processes, s.group_size, s.levels, s.split_above is not None)
    local = [roster for number, roster in tree.rosters.items() if number < LEVEL]
    if s.split_above is not None or s.merge_below:
        sizes = [len(roster) for roster in local]
        if s.split_above is not None:
            sizes.append((s.split_above + 1) // 2)
        alone = len(gone) <= 1 and not (left and s.merge_below)
        return alone or len(gone) < min(sizes)
    if len(local) == 1 or not any(roster <= gone for roster in local):
        return True
    servers = [set(members) for number, members in tree.members.items() if number >= LEVEL]
    return not cut and not any(members <= gone for members in servers)


def _most_gone(s: Any, processes: int) -> int:
    """How many processes may crash or leave, given how many members keep a message."""
    if s.early or not s.safe:
        return 0
    most = {"all": processes, "server": 1, "recipients": int(s.resilience)}
    return most[s.inside]


def _cuts_off(fault: Fault) -> bool:
    return isinstance(fault, LinkDown | Pause | Slow) or (
        isinstance(fault, Loss) and fault.for_ms is not None
    )


def _bearable(fault: Fault, heartbeat_ms: float, diameter: int) -> bool:
    """Whether processes still hear heartbeats of each other, or the fault ends."""
    if isinstance(fault, Reordering):
        return fault.late_ms <= heartbeat_ms
    if isinstance(fault, Duplication):
        return fault.rate * diameter <= DUPLICATION_MOST
    if isinstance(fault, LinkDown | Pause | Slow):
        return fault.for_ms is not None
    return not (isinstance(fault, RatedFault) and fault.for_ms is None) or (
        fault.rate * diameter <= LOSS_MOST
    )


def _late_ms(scenario: Scenario) -> float:
    """How late a packet may be that nothing overtakes: all are late, or the channel keeps order."""
    keeps_order = scenario.experiment.channel is not None
    return sum(ms for fault, ms in _lateness(scenario) if fault.rate == 1 or keeps_order)


def _jitter_ms(scenario: Scenario) -> float:
    """How much later than another a packet may be that takes the same way."""
    return sum(ms for fault, ms in _lateness(scenario) if fault.rate < 1)


def _lateness(scenario: Scenario) -> Iterator[tuple[Reordering, float]]:
    """The faults that make packets late, and by how much on the whole way."""
    crossed = nx.diameter(scenario.network.graph)
    for fault in scenario.experiment.faults:
        if isinstance(fault, Reordering):
            yield fault, fault.late_ms * (crossed if fault.link is None else 1)


def _least_patience_ms(network: Network, heartbeat_ms: float) -> float:
    """A round trip and three heartbeats."""
    longest = max(link["delay_ns"] for _, _, link in network.graph.edges(data=True)) / 1e6
    return rounded(3 * heartbeat_ms + 3 * longest * nx.diameter(network.graph))


def _end_ms(experiment: Experiment) -> float:
    """When the last message is sent that is no answer, and the last fault ends that has no trigger."""
    ends = (fault.at_ms + (fault.for_ms or 0) for fault in experiment.faults)
    return max(experiment.workload.duration / 1e6, *ends, 0)
