"""Protocols that promise to deliver everything, and what all profiles have in common.

- Over raw channels no packet is lost. Packets may be duplicated, links may be slow, processes may
  pause; packets may be reordered unless the protocol, with its settings, needs FIFO channels.
- Over the reliable channel packets are lost and reordered too, and links go down, but not for ever.
- Processes crash and do not restart. A protocol that floods survives that under all these faults if
  the rest of its overlay is connected, whichever of the processes crash. One in which every sender
  sends to all receivers itself survives it only over raw channels: over the reliable channel a message
  may have reached some processes when its sender crashes, and nobody sends it to the others, which
  wait for it. Where processes wait to hear from each other, nobody crashes.

Faults are so mild that the reliable channel never gives up: the more links a packet crosses and the
more packets a message is cut into, the less is lost.
"""

import random
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, get_args, get_origin, get_type_hints

from testbed.experiment import Scenario, parse
from testbed.experiment.seeds import stream
from testbed.faults import Crash, LinkDown, Loss, Pause, Reordering
from testbed.fuzz import elements
from testbed.fuzz.elements import Aims, Document, Members, Table
from testbed.fuzz.messages import script
from testbed.fuzz.priorities import change_points
from testbed.plugins import reference
from testbed.protocols import Protocol
from testbed.workloads.script import ScriptedMessage

LATE_MS = 50.0  # how late packets of a link of low priority are at most
SETTLE_MS = 300.0  # how long a protocol that never rests goes on after the last message
RETRIES = 40  # of the reliable channel: enough for the worst faults that are drawn


class Origin(NamedTuple):
    """What an experiment is drawn from, besides its protocol."""

    seed: int
    large: bool = False  # 9 to 32 processes
    state: str | None = None  # faults strike where a process has just got into this state


class Profile:
    """Draws experiments for one protocol, and knows which of them it promises to survive."""

    numbers: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    """Of settings that are numbers: values with which much happens in a short run."""
    least: ClassVar[tuple[int, ...]] = (2,)
    """How many processes there are at least; one of these."""
    sizes: ClassVar[tuple[int, ...]] = elements.SIZES
    """How many there are at most; one of these."""
    mutants: ClassVar[int] = 0
    """How many mutants of a small experiment are tried."""
    storms: ClassVar[int] = 0
    """How many small experiments of another kind are tried beside the one that is drawn."""
    scenes: ClassVar[int] = 0
    """Of how many scenes of the corpus mutants are tried,"""
    variations: ClassVar[int] = 0
    """and how many of each."""

    def __init__(self, protocol: type[Protocol]) -> None:
        self.protocol = protocol
        self.aims = Aims()

    def draw(self, origin: Origin) -> Document:
        """The experiment of an origin."""
        protocol, (seed, large, state) = self.protocol, origin
        how = [*["large"] * large, *([] if state is None else [state])]
        rng = stream(seed, "fuzz", protocol.name, *how)
        rows = [row for row in protocol.transitions if state in (None, row.next)]
        self.aims = Aims(sorted({row.event for row in rows}), 0.3 if state is None else 1.0)
        nodes = elements.size(rng, rng.choice(self.least), self.sizes, large)
        reliable = self.reliable(rng)
        groups = self.groups(nodes, rng)
        document: Document = {
            "name": "-".join(["fuzz", protocol.name, str(seed), *how]).replace(" ", "-"),
            "seed": seed,
            "channel": {"model": "reliable", "retries": RETRIES} if reliable else "raw",
            "protocol": {"name": reference(protocol), **self.settings(rng)},
            "topology": elements.topology(nodes, rng),
            "links": self.links(nodes, reliable, rng),
            "transport": {
                "routing": rng.choice(["hops", "delay"]),
                "mtu": 1500 if reliable else rng.choice([200, 1500]),
            },
            "workload": {"model": "script", "send": self.messages(nodes, groups, rng)},
        }
        if not protocol.rests:
            document["workload"]["settle_ms"] = SETTLE_MS
        if groups:
            document["groups"] = {"model": "named", "members": groups}
        if protocol.needs_overlay:
            document["overlay"] = {"model": rng.choice(["hypercube", "ring", "tree", "complete"])}
        self.finish(document, rng)
        return document

    def settled(self, document: Document) -> Document:
        """An experiment that lasts as long as repairs may take with its settings."""
        return document

    def storm(self, seed: int, number: int) -> Document:
        """One of the ``storms`` of a seed."""
        raise NotImplementedError

    def reliable(self, rng: random.Random) -> bool:
        """Whether the experiment uses the reliable channel."""
        return rng.random() < 0.5

    def groups(self, nodes: int, rng: random.Random) -> Members:
        """The groups of the experiment, by name."""
        return {}

    def settings(self, rng: random.Random) -> Table:
        """A value for every setting that is a boolean, a literal or one of ``numbers``."""
        hints = get_type_hints(self.protocol.Settings)
        choices: dict[str, tuple[Any, ...]] = {
            name: (True, False) if kind is bool else self.numbers.get(name) or get_args(kind)
            for name, kind in ((f.name, hints[f.name]) for f in fields(self.protocol.Settings))
            if kind is bool or get_origin(kind) is Literal or name in self.numbers
        }
        return {name: rng.choice(values) for name, values in choices.items()}

    def links(self, nodes: int, reliable: bool, rng: random.Random) -> Table:
        """Delays and bandwidths; sometimes a queue, where the channel makes up for what it drops.

        Links between many processes are fast: else queues would be longer than any timeout.
        """
        small = nodes <= elements.SMALL
        rates: list[Any] = [1.0, 10.0, 1000.0, [0.5, 100.0]]
        links: Table = {
            "delay_ms": rng.choice([0.0, 1.0, [0.0, 1.0], [0.0, 10.0], [0.1, 50.0]]),
            "bandwidth_mbit": rng.choice(rates if small else [100.0, 1000.0]),
        }
        if small and reliable and rng.random() < 0.2:
            links["queue_packets"] = rng.randint(20, 60)  # two messages in fragments fit
        return links

    def messages(self, nodes: int, groups: Members, rng: random.Random) -> list[ScriptedMessage]:
        """The script of the experiment."""
        return script(self.protocol, nodes, groups, rng)

    def finish(self, document: Document, rng: random.Random) -> None:
        """Add what depends on the network that follows from the rest: the faults."""
        document["fault"] = self.faults(resolved(document), rng)

    def faults(self, scenario: Scenario, rng: random.Random) -> list[Table]:
        """Faults that a correct protocol survives."""
        experiment, network = scenario.experiment, scenario.network
        protocol, reliable = self.protocol, experiment.channel is not None
        kinds = ["duplication", "slow", "pause"]
        if reliable:
            kinds += ["reordering", "link-down", "partition"]
        elif not protocol.needs_fifo(experiment.settings):
            kinds.append("reordering")
        drawn = elements.some_faults(kinds, network, rng)
        drawn += elements.aimed_pauses(network, self.aims, rng)
        if reliable and rng.random() < 0.7:
            drawn.append(elements.loss(network, rng))
        if rng.random() < 0.3:
            steps = len(experiment.workload.send) * network.processes  # type: ignore[attr-defined]
            fifo = not reliable and protocol.needs_fifo(experiment.settings)
            drawn += change_points(network, steps, LATE_MS, fifo, rng)
        outlived = (protocol.needs_overlay or not reliable) and not protocol.needs_everybody
        if outlived and rng.random() < 0.3:
            drawn += elements.crashes(network, self.aims, rng)
        return drawn

    def promised(self, scenario: Scenario) -> bool:
        """Whether a correct protocol survives this, as far as it follows from the kinds of faults."""
        experiment, network, protocol = scenario.experiment, scenario.network, self.protocol
        faults = experiment.faults
        if any(isinstance(fault, LinkDown | Pause) and fault.for_ms is None for fault in faults):
            return False
        crashes = [fault for fault in faults if isinstance(fault, Crash)]
        survives = all(
            elements.survivable(network, crashed)
            for crashed in elements.losses(crashes, network.processes)
        )
        if crashes and protocol.needs_everybody:
            return False
        if experiment.channel is not None:
            return not crashes or (protocol.needs_overlay and survives)
        fifo = protocol.needs_fifo(experiment.settings)
        losing = (Loss, LinkDown, Reordering) if fifo else (Loss, LinkDown)
        links = experiment.links
        return (
            not (
                any(isinstance(fault, losing) for fault in faults)
                or links.loss
                or links.queue_packets
            )
            and survives
        )

    def repair_ms(self, settings: Any) -> float | None:
        """How long after the last fault everything works again; None if that is not promised."""
        return None


def resolved(document: Document) -> Scenario:
    """The scenario of a document."""
    return Scenario.of(parse(document, Path(document["name"]))[0])
