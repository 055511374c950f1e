"""One experiment, simulated in memory and judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from protocols import MessageId
from testbed.check import Event, Verdict, check_events
from testbed.engines.simulate import OverError, Simulation
from testbed.errors import UserError
from testbed.experiment import Experiment, parse
from testbed.fuzz.draw import Document, promised
from testbed.network import Network, build_network
from testbed.script import Script

TICKS = 4  # of 32,768 events: what goes on for longer does not end
TICKS_OF_THE_RESTLESS = 100  # their runs end by time
TOO_MANY = 4  # times as many deliveries as can be due: so does what delivers this often
UNFINISHED = {"loss", "gap"}  # prove nothing about what was stopped


class Trial(NamedTuple):
    """What came of an experiment; ``wrong`` is a kind of violation, "error" or "endless"."""

    wrong: str | None
    sentence: str
    messages: int
    deliveries: int
    faults: int


class MemoryLog:
    """Events as the oracle takes them, instead of a file; full after so many deliveries."""

    def __init__(self, most: int) -> None:
        self.events: defaultdict[int, list[Event]] = defaultdict(list)
        self.left = most

    def send(
        self, t: int, node: int, name: MessageId, to: frozenset[int] | None, *_: object
    ) -> None:
        """The application of a node has multicast a message."""
        self.events[node].append(Event("send", *name, to, t))

    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        """A node's application has been given a message."""
        self.events[node].append(Event("deliver", source, seq, None, t))
        self.left -= 1
        if self.left < 0:
            raise OverError

    def hold(self, *_: object) -> None:
        """The oracle does not look at these."""

    def leave(self, *_: object) -> None:
        """The oracle does not look at these."""

    join = leave

    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        """What a protocol wants to be known."""
        self.events[node].append(Event(event, t=t, facts=facts))

    def crash(self, t: int, node: int) -> None:
        """A node's process is gone."""
        self.events[node].append(Event("crash", t=t))

    def restart(self, t: int, node: int, incarnation: int) -> None:
        """A node's process begins anew."""
        self.events[node].append(Event("restart", t=t))


def attempt(document: Document) -> Trial | None:
    """Run an experiment; None if there is no such one, or if no protocol promises to survive it."""
    try:
        experiment = parse(document, Path(document["name"]))[0]
        network = build_network(experiment)
        return _attempt(experiment, network) if promised(experiment, network) else None
    except UserError:
        return None


def _attempt(experiment: Experiment, network: Network) -> Trial:
    assert isinstance(experiment.workload, Script)
    due = len(experiment.workload.send) * network.processes
    log: Any = MemoryLog(most=TOO_MANY * due)
    ticks, most = 0, TICKS if experiment.protocol.rests else TICKS_OF_THE_RESTLESS

    def progress(stage: str, done: int, of: int) -> None:
        nonlocal ticks
        ticks += 1
        if ticks >= most:
            raise OverError

    simulation = Simulation(experiment, network, log)
    wrong, sentence = None, ""
    try:
        simulation.run(progress)
    except UserError:
        raise
    except Exception as error:  # whatever a protocol under test raises is a finding
        wrong, sentence = "error", f"{type(error).__name__}: {error}"
    verdict = check_events(
        range(network.processes),
        {n: log.events[n] for n in range(network.processes)},
        optimistic=experiment.protocol.optimistic,
    )
    if wrong is None:
        wrong, sentence = _judge(verdict, endless=log.left < 0 or ticks >= most)
    return Trial(wrong, sentence, verdict.messages, verdict.deliveries, len(experiment.faults))


def _judge(verdict: Verdict, endless: bool) -> tuple[str | None, str]:
    for kind in verdict.faults:
        if not (endless and kind in UNFINISHED):
            return kind, verdict.explain(1)[1]
    return ("endless", "it does not end") if endless else (None, "")
