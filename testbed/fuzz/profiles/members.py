"""The daisy, which keeps members and repairs what faults do to them.

A scene is drawn first (``scenes``), then settings and faults for it until they are within the limits,
so that no scene is rare because few settings allow it. A few processes, servers among them, are the
actors: most faults strike them, and most messages are from and to them, about one a heartbeat.
Timeouts fit the network, and faults fit these, so that processes are suspected, expelled and admitted
again, and groups split and merge, while messages flow. In some experiments, when all faults are over
and there was time to repair their effects, some processes send once more: these messages must arrive
everywhere. Most systems are small: what goes wrong in a large one mostly goes wrong in one of two or
three groups, whose run takes a tenth of the time.

All trials are within what the daisy ``promises``.
"""

import random
from typing import Any, ClassVar

import networkx as nx
from typing_extensions import override

from testbed.experiment import Experiment, Scenario
from testbed.experiment.network import Network
from testbed.experiment.seeds import stream
from testbed.fuzz import elements
from testbed.fuzz.elements import Document, Members, Table, rounded
from testbed.fuzz.messages import script_among
from testbed.fuzz.priorities import change_points
from testbed.fuzz.profiles.plain import Profile, resolved
from testbed.fuzz.profiles.promises import least_patience_ms, promises
from testbed.fuzz.profiles.scenes import (
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
        self._keep_messages_promised(document)

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
        self._keep_messages_promised(document)
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

    def _keep_messages_promised(self, document: Document) -> None:
        """Address all messages to everybody if the faults allow nothing else."""
        if not self.promised(resolved(document)):
            for message in document["workload"]["send"]:
                message.pop("to", None)

    def _change_points(self, scenario: Scenario, rng: random.Random) -> list[Table]:
        s, network = scenario.experiment.settings, scenario.network
        steps = len(scenario.experiment.workload.send) * network.processes  # type: ignore[attr-defined]
        spare = s.patience_ms - least_patience_ms(network, s.heartbeat_ms)
        return change_points(network, steps, min(s.heartbeat_ms, spare / 4), False, rng)

    @override
    def promised(self, scenario: Scenario) -> bool:
        """Whether the daisy promises to survive the experiment, and has time to repair what it can."""
        workload, settings = scenario.experiment.workload, scenario.experiment.settings
        return workload.settle_ms >= self.repair_ms(settings) and promises(scenario)

    @override
    def repair_ms(self, settings: Any) -> float:
        # One that is merged into a group that has crashed seeks it for three times the grace.
        graces = 4 if settings.merge_below else 3
        once = graces * settings.grace_ms + 40 * settings.heartbeat_ms
        return float(once * max(1, settings.max_levels - 1))  # level by level, if they grow

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
    patience = max(rng.choice([3.5, 3.5, 5, 10]) * heartbeat, least_patience_ms(network, heartbeat))
    grace = rng.choice([2, 3]) * patience
    drawn: Table = {
        "group_size": rng.choice([1, 2, 2, 2, 2, 3, 3, 4, 5]),
        "levels": rng.choice([1, 2, 2, 2, 2, 2, 2, 3, 4]),
        "heartbeat_ms": heartbeat,
        "patience_ms": rounded(patience),
        "grace_ms": rounded(grace),
        "forget_ms": rounded(rng.choice([4 * (grace + patience), 60_000.0])),
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


def _end_ms(experiment: Experiment) -> float:
    """When the last message is sent that is no answer, and the last fault ends that has no trigger."""
    ends = (fault.at_ms + (fault.for_ms or 0) for fault in experiment.faults)
    return max(experiment.workload.duration / 1e6, *ends, 0)
