"""What a space-time diagram shows of a simulated run."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from scripts.reproductions.errata.cases import Case
from testbed.check import check_events
from testbed.check.tickets import FOREVER
from testbed.experiment import Experiment, Scenario
from testbed.live.session import violations
from testbed.live.trace import Copy, Step, Trace
from testbed.live.watched import traced


class Multicast(NamedTuple):
    """A process sends a message of the application."""

    t: int
    process: int
    name: str


class Owned(NamedTuple):
    """A process owns the ticket of the diagram."""

    process: int
    since: int
    until: int


@dataclass(frozen=True)
class Execution:
    """The steps and copies of one run that belong into the diagram."""

    processes: int
    multicasts: list[Multicast]
    steps: list[tuple[Step, bool]]  # and whether something was delivered that should not be yet
    copies: list[tuple[Copy, float]]  # and when the process got it; infinity if never
    never: list[tuple[int, str]]  # a process, and what it never delivers
    owned: list[Owned]


def execution(case: Case, experiment: Experiment) -> Execution:
    """Simulate an experiment, and keep what the diagram shows."""
    scenario, trace = Scenario.of(experiment), Trace()
    traced(scenario, trace)
    nodes, optimistic = range(scenario.network.processes), experiment.protocol.optimistic
    verdict = check_events(nodes, {n: trace.events[n] for n in nodes}, optimistic=optimistic)
    wrong = [] if optimistic else violations(verdict, trace.steps)
    bad = {violation["step"] for violation in wrong}
    begin, end = case.from_ms * 1e6, case.to_ms * 1e6
    multicasts = sorted(
        Multicast(e.t, e.source, f"m({e.source},{e.seq})")
        for n in nodes
        for e in trace.events[n]
        if e.event == "send" and begin <= e.t <= end
    )
    named = set() if optimistic else {multicast.name for multicast in multicasts}
    return Execution(
        len(nodes),
        multicasts,
        [(s, n in bad) for n, s in enumerate(trace.steps) if begin <= s.t <= end],
        [
            (copy, inf if copy.got is None else trace.steps[copy.got].t)
            for copy in trace.copies
            if begin <= copy.at <= end and (copy.name in named or copy.what in case.draws)
        ],
        [(v["node"], v["effect"]) for v in wrong if v["step"] is None],
        [] if case.ticket is None else [*_owned(trace, case.ticket, round(begin))],
    )


def _owned(trace: Trace, ticket: int, begin: int) -> Iterator[Owned]:
    """Who owned a ticket when, from ``begin`` on, by what processes have noted."""
    for node, events in trace.events.items():
        held: Owned | None = None
        for event in events:
            if event.event != "tickets" or event.facts is None:
                continue
            if event.facts["owns"] == ticket:
                lease = event.facts["until"]
                since = max(event.t, begin) if held is None else held.since
                held = Owned(node, since, FOREVER if lease is None else lease)
            elif held is not None:
                yield held._replace(until=min(held.until, event.t))
                held = None
        if held is not None:
            yield held
