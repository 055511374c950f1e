"""One experiment, simulated in memory and judged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from typing_extensions import override

from testbed.check import Event, Verdict, check_events
from testbed.check.memory import MemoryLog
from testbed.engines.simulate.engine import RunEnded, Simulation
from testbed.engines.simulate.links import EVENTS_PER_TICK
from testbed.errors import ProtocolError, UserError
from testbed.experiment import Scenario
from testbed.faults import Crash
from testbed.fuzz.coverage import reached, sequences
from testbed.fuzz.elements import Document
from testbed.fuzz.mutants import Moment, moments
from testbed.fuzz.profiles import Profile, profile_of
from testbed.fuzz.profiles.plain import resolved
from testbed.node.blame import fault
from testbed.node.effects import EndlessError
from testbed.plugins.blame import FAILURES, words
from testbed.plugins.limits import StuckError, time_limit
from testbed.progress import LEVEL
from testbed.protocols import NS_PER_MS, Transition
from testbed.workloads.script import Script

TICKS = 4  # progress reports, each of 32,768 events: a run with more counts as endless
TICKS_IF_RESTLESS = 100  # the limit for a protocol that never rests, whose run ends by time
DELIVERIES_MOST = 4  # times the deliveries that can be due: a run with more counts as endless
LOOKS = 8  # in the time in which a run settles, at whether all is delivered
COSTLY = {"stuck", "endless"}  # one example of such a failure is enough
UNFINISHED = {"loss", "gap"}  # violations that prove nothing about a run that was stopped


class Triggered(NamedTuple):
    """Which fault of the experiment was triggered, at which node and when."""

    fault: int
    node: int
    at: int


class Trial(NamedTuple):
    """The outcome of an experiment; ``wrong`` is a kind of violation, or one of these:

    - "error": the protocol raised an exception;
    - "stuck": one of its calls does not end;
    - "endless": the run does not end;
    - "unrepaired": long after all faults a message is not delivered to a member, or cannot be sent.
    """

    wrong: str | None
    sentence: str
    messages: int
    deliveries: int
    faults: int
    reached: frozenset[Transition] = frozenset()  # of the protocol's table of states
    triggered: tuple[Triggered, ...] = ()
    moments: tuple[Moment, ...] = ()  # from which mutants are made
    sequences: frozenset[tuple[str, ...]] = frozenset()


class Example(NamedTuple):
    """An experiment with its outcome."""

    document: Document
    trial: Trial


class LimitedLog(MemoryLog):
    """A log that ends a run which delivers far more than there is to deliver."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        super().deliver(t, node, source, seq)
        self.left -= 1
        if self.left < 0:
            raise RunEnded


def attempt(document: Document, beyond: bool = False) -> Trial | None:
    """Run an experiment; None if it is invalid.

    And if no correct protocol promises to survive it, unless it may be ``beyond`` that.
    """
    try:
        scenario = resolved(document)
        profile = profile_of(scenario.experiment.protocol)
        promised = beyond or profile.promised(scenario)
    except ProtocolError as error:  # it cannot even be made
        return Trial("error", str(error), 0, 0, 0)
    except UserError:
        return None
    with time_limit():
        return _attempt(scenario, profile) if promised else None


def _attempt(scenario: Scenario, profile: Profile) -> Trial:
    experiment, network = scenario.experiment, scenario.network
    assert isinstance(experiment.workload, Script)
    due = len(experiment.workload.send) * network.processes
    # A process that restarts may answer again what it has answered before.
    restarts = sum(isinstance(f, Crash) and f.for_ms is not None for f in experiment.faults)
    log = LimitedLog(most=DELIVERIES_MOST * due * (1 + restarts) ** 2)
    ticks, most = 0, TICKS if experiment.protocol.rests else TICKS_IF_RESTLESS

    def progress(stage: str, done: int, of: int) -> None:
        nonlocal ticks
        if of == LEVEL:
            return
        ticks += 1
        if ticks >= most:
            simulation.stop_at_next_step(ticks * EVENTS_PER_TICK)
        if ticks > most:
            raise RunEnded

    simulation = Simulation(scenario, log)
    repair_ms = profile.repair_ms(experiment.settings)
    if repair_ms is not None:
        _end_when_done(simulation, log.events)
    wrong, sentence = None, ""
    try:
        simulation.run(progress)
    except UserError:
        raise
    except FAILURES as error:  # whatever a protocol under test raises is a finding
        its = fault(error)
        sentence = str(its.of(experiment.protocol)) if its else words(error)
        wrong = {StuckError: "stuck", EndlessError: "endless"}.get(type(error), "error")
    verdict = check_events(
        range(network.processes),
        {n: log.events[n] for n in range(network.processes)},
        optimistic=experiment.protocol.optimistic,
    )
    if wrong is None:
        wrong, sentence = _judge(verdict, endless=log.left < 0 or ticks > most)
    if wrong is None and repair_ms is not None:
        wrong, sentence = _unrepaired(repair_ms, simulation, log.events)
    rows = frozenset(reached(experiment.protocol, log.events))
    return Trial(
        *(wrong, sentence, verdict.messages, verdict.deliveries, len(experiment.faults), rows),
        triggered=_triggered(simulation),
        moments=moments(log.events) if profile.mutants else (),
        sequences=sequences(log.events) if profile.mutants else frozenset(),
    )


def _end_when_done(simulation: Simulation, events: Mapping[int, list[Event]]) -> None:
    """End the run when all is delivered and some more time has passed: only heartbeats would follow."""
    scheduler = simulation.network.scheduler
    pause = simulation.scenario.experiment.workload.settling // LOOKS

    def look() -> None:
        if scheduler.now >= simulation.planned() + pause and not _lacks(simulation, events):
            raise RunEnded
        scheduler.call_at(max(simulation.planned(), scheduler.now) + pause, look)

    scheduler.call_at(simulation.scenario.last_send, look)


def _lacks(simulation: Simulation, events: Mapping[int, list[Event]]) -> bool:
    """Whether a member has not sent, or not delivered, something that it might yet."""
    here = {n for n in range(len(simulation.nodes)) if _is_member(events[n])}
    sent = {(e.source, e.seq): e.to for log in events.values() for e in log if e.event == "send"}
    # each process once: one that has restarted may deliver a message again
    theirs = ({(e.source, e.seq) for e in events[n] if e.event == "deliver"} for n in here)
    got = Counter(chain.from_iterable(theirs))
    return any(simulation.nodes[n].backlog for n in here) or any(
        got[name] < len(here if to is None else here.intersection(to)) for name, to in sent.items()
    )


def _triggered(simulation: Simulation) -> tuple[Triggered, ...]:
    faults = simulation.scenario.experiment.faults
    numbers = {id(fault): number for number, fault in enumerate(faults)}
    found = simulation.faults.schedule.triggered if simulation.faults else []
    return tuple(Triggered(numbers[id(fault)], node, at) for fault, node, at in found)


def _judge(verdict: Verdict, endless: bool) -> tuple[str | None, str]:
    for kind in verdict.faults:
        if not (endless and kind in UNFINISHED):
            return kind, verdict.explain(1)[1]
    return ("endless", "the run does not end") if endless else (None, "")


def _unrepaired(
    repair_ms: float, simulation: Simulation, events: Mapping[int, list[Event]]
) -> tuple[str | None, str]:
    """Check that all final members can send, and delivered what was sent long after all faults.

    The oracle, which knows no time, asks less of a process that has rejoined or restarted.
    """
    changed = simulation.faults.latest if simulation.faults else 0
    quiet = changed + repair_ms * NS_PER_MS
    here = [n for n in range(len(simulation.nodes)) if _is_member(events[n])]
    got = {n: {(e.source, e.seq) for e in events[n] if e.event == "deliver"} for n in here}
    for node in here:
        if simulation.nodes[node].backlog:
            return "unrepaired", f"node {node} waits to send, long after all faults"
        for e in events[node]:
            for peer in here if e.event == "send" and e.t >= quiet else ():
                if (e.to is None or peer in e.to) and (e.source, e.seq) not in got[peer]:
                    name = f"m({e.source},{e.seq})"
                    return "unrepaired", (
                        f"node {peer} never delivered {name}, sent long after all faults"
                    )
    return None, ""


def _is_member(events: Sequence[Event]) -> bool:
    """Whether a node has neither crashed nor left, or has come back."""
    last = [e.event for e in events if e.event in ("crash", "restart", "leave", "join")]
    return not last or last[-1] in ("restart", "join")
