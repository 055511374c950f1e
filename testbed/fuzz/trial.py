"""One experiment, simulated in memory and judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from typing_extensions import override

from testbed.check import Event, Verdict, check_events
from testbed.engines.simulate.engine import RunEnded, Simulation
from testbed.errors import UserError
from testbed.experiment import Experiment, Scenario, parse
from testbed.faults import Crash
from testbed.fuzz import members
from testbed.fuzz.draw import promised
from testbed.fuzz.values import Document
from testbed.node.log import Log
from testbed.protocols import NS_PER_MS, MessageId
from testbed.workloads.script import Script

TICKS = 4  # of 32,768 events: what goes on for longer does not end
TICKS_OF_THE_RESTLESS = 100  # their runs end by time
TOO_MANY = 4  # times as many deliveries as can be due: so does what delivers this often
UNFINISHED = {"loss", "gap"}  # prove nothing about what was stopped


class Trial(NamedTuple):
    """What came of an experiment; ``wrong`` is a kind of violation, or one of these:

    - "error": the protocol raised an exception;
    - "endless": it does not end;
    - "unrepaired": long after all faults something is not delivered to a member, or cannot be sent.
    """

    wrong: str | None
    sentence: str
    messages: int
    deliveries: int
    faults: int


class MemoryLog(Log):
    """Events as the oracle takes them, instead of a file; full after so many deliveries."""

    def __init__(self, most: int) -> None:
        self.events: defaultdict[int, list[Event]] = defaultdict(list)
        self.left = most

    @override
    def send(
        self,
        t: int,
        node: int,
        name: MessageId,
        to: frozenset[int] | None,
        payload: int,
        control: int = 0,
    ) -> None:
        self.events[node].append(Event("send", *name, to, t))

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        self.events[node].append(Event("deliver", source, seq, None, t))
        self.left -= 1
        if self.left < 0:
            raise RunEnded

    @override
    def leave(self, t: int, node: int) -> None:
        self.events[node].append(Event("leave", t=t))

    @override
    def join(self, t: int, node: int) -> None:
        self.events[node].append(Event("join", t=t))

    @override
    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        self.events[node].append(Event(event, t=t, facts=facts))

    @override
    def crash(self, t: int, node: int) -> None:
        self.events[node].append(Event("crash", t=t))

    @override
    def restart(self, t: int, node: int, incarnation: int) -> None:
        self.events[node].append(Event("restart", t=t))


def attempt(document: Document) -> Trial | None:
    """Run an experiment; None if there is no such one, or if no protocol promises to survive it."""
    try:
        experiment = parse(document, Path(document["name"]))[0]
        scenario = Scenario.of(experiment)
        return _attempt(scenario) if promised(experiment, scenario.network) else None
    except UserError:
        return None


def _attempt(scenario: Scenario) -> Trial:
    experiment, network = scenario.experiment, scenario.network
    assert isinstance(experiment.workload, Script)
    due = len(experiment.workload.send) * network.processes
    again = 1 + sum(isinstance(f, Crash) and f.for_ms is not None for f in experiment.faults)
    log = MemoryLog(most=TOO_MANY * due * again**2)  # who starts again may answer again
    ticks, most = 0, TICKS if experiment.protocol.rests else TICKS_OF_THE_RESTLESS

    def progress(stage: str, done: int, of: int) -> None:
        nonlocal ticks
        ticks += 1
        if ticks >= most:
            raise RunEnded

    simulation = Simulation(scenario, log)
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
    if wrong is None and experiment.protocol.repairs:
        wrong, sentence = _unrepaired(experiment, simulation, log.events)
    return Trial(wrong, sentence, verdict.messages, verdict.deliveries, len(experiment.faults))


def _judge(verdict: Verdict, endless: bool) -> tuple[str | None, str]:
    for kind in verdict.faults:
        if not (endless and kind in UNFINISHED):
            return kind, verdict.explain(1)[1]
    return ("endless", "it does not end") if endless else (None, "")


def _unrepaired(
    experiment: Experiment, simulation: Simulation, events: Mapping[int, list[Event]]
) -> tuple[str | None, str]:
    """Whether all who are members in the end can send, and have what was sent long after all faults.

    The oracle, which knows no time, can ask less of one that has left and joined or started again.
    """
    changed = simulation.faults.latest if simulation.faults else 0
    quiet = changed + members.repair_ms(experiment.settings) * NS_PER_MS
    here = [n for n in range(len(simulation.nodes)) if _is_member(events[n])]
    got = {n: {(e.source, e.seq) for e in events[n] if e.event == "deliver"} for n in here}
    for node in here:
        if simulation.nodes[node].backlog:
            return "unrepaired", f"node {node} waits to send, long after all faults"
        for e in events[node]:
            for peer in here if e.event == "send" and e.t >= quiet else ():
                if (e.to is None or peer in e.to) and (e.source, e.seq) not in got[peer]:
                    name = f"m({e.source},{e.seq})"
                    told = f"node {peer} never delivered {name}, sent long after all faults"
                    return "unrepaired", told
    return None, ""


def _is_member(events: Sequence[Event]) -> bool:
    """Whether a node is neither dead nor has left."""
    last = [e.event for e in events if e.event in ("crash", "restart", "leave", "join")]
    return not last or last[-1] in ("restart", "join")
