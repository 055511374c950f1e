"""An experiment file in the hands of a person: faults are added, and one sees what happens then."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from testbed.check import Verdict, check_events
from testbed.errors import UserError
from testbed.experiment import Experiment, Scenario, parse, read_document
from testbed.experiment.network import Network
from testbed.live.trace import MOST_STEPS, Step, Trace
from testbed.live.watched import traced
from testbed.node.blame import fault
from testbed.plugins.blame import FAILURES
from testbed.plugins.limits import time_limit

Table = dict[str, Any]  # of an experiment file
SHOWN = 100  # violations


class Session:
    """An experiment file that is read once and run as often as somebody changes something."""

    def __init__(self, file: Path, **overrides: Any) -> None:
        self.file = file
        given = {key: value for key, value in overrides.items() if value is not None}
        self.document = {**read_document(file), **given}
        self.experiments([])

    def experiments(self, faults: Sequence[Table]) -> list[Experiment]:
        """The experiments of the file, one for each protocol, with these faults as well."""
        own = self.document.get("fault", [])
        changed = {**self.document, "engine": "simulate", "fault": [*own, *faults]}
        return parse(changed, self.file)

    def run(self, protocol: int, faults: Sequence[Table]) -> dict[str, Any]:
        """Simulate one of the experiments; all that a page needs to know of it."""
        experiments = self.experiments(faults)
        if not 0 <= protocol < len(experiments):
            raise UserError(f"{self.file}: there is no protocol {protocol}")
        scenario, trace, failure = Scenario.of(experiments[protocol]), Trace(), ""
        try:
            with time_limit():
                complete = traced(scenario, trace)
        except UserError:
            raise
        except FAILURES as error:  # whatever the protocol led to
            if (its := fault(error)) is None:
                raise
            complete, failure = True, str(its.of(scenario.experiment.protocol))
        if not complete:
            failure = (
                f"the run has more than {MOST_STEPS:,} steps; here are the first of them. A smaller "
                "duration_ms, fewer senders or messages in the file would show it to its end; "
                "`testbed live` of a directory that `testbed run` made begins before a violation"
            )
        return {
            "protocols": [experiment.label for experiment in experiments],
            "protocol": protocol,
            "faults": self.document.get("fault", []),
            "failure": failure,
            "changeable": True,
            "title": scenario.experiment.name,
            "seed": scenario.experiment.seed,
            **described_network(scenario.network),
            **trace.to_json(),
            **_judged(scenario, trace, bool(failure)),
        }

    def save(self, protocol: int, faults: Sequence[Table]) -> Path:
        """Write an experiment file beside the one that was read, under a new name."""
        experiment = self.experiments(faults)[protocol]
        tables = self.document["protocol"]
        table = tables[protocol] if isinstance(tables, list) else tables
        document = {
            **self.document,
            "protocol": table,
            "fault": [*self.document.get("fault", []), *faults],
        }
        text = tomli_w.dumps(document)
        for number in range(1, 10_000):
            path = self.file.with_name(f"{self.file.stem}-{experiment.protocol.name}-{number}.toml")
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
                return path
            except FileExistsError:
                continue
        raise UserError(f"{self.file.parent}: there are ten thousand files of this name already")


def described_network(network: Network) -> dict[str, Any]:
    """The network as a page draws it."""
    graph = network.graph
    return {
        "processes": network.processes,
        "places": [[graph.nodes[n].get("x", 0), graph.nodes[n].get("y", 0)] for n in sorted(graph)],
        "links": sorted(sorted(edge) for edge in graph.edges),
    }


def _judged(scenario: Scenario, trace: Trace, cut: bool) -> dict[str, Any]:
    """What the oracle says; of a run that was cut short, only what is wrong up to there."""
    nodes = range(scenario.network.processes)
    optimistic = scenario.experiment.protocol.optimistic
    verdict = check_events(nodes, {n: trace.events[n] for n in nodes}, optimistic=optimistic)
    wrong = violations(verdict, trace.steps)
    unknown = cut and not any(v["step"] is not None for v in wrong)
    return {
        "verdict": "unknown" if unknown else verdict.verdict,
        "sentences": [] if unknown else verdict.explain(20),
        "violations": [] if unknown else wrong,
    }


def violations(verdict: Verdict, steps: Sequence[Step]) -> list[dict[str, Any]]:
    """What is wrong and in which step it shows; a loss shows in none."""
    found = [
        {
            "step": _delivery(steps, v.process, _m(v.effect)),
            "node": v.process,
            "effect": _m(v.effect),
            "cause": _m(v.cause),
            "sentence": str(v),
        }
        for v in verdict.violations(SHOWN)
    ]
    for node, name in verdict.where("duplicate", SHOWN):
        step = _delivery(steps, node, _m(name), 2)
        sentence = f"node {node} delivered {_m(name)} more than once"
        found.append(
            {"step": step, "node": node, "effect": _m(name), "cause": None, "sentence": sentence}
        )
    for node, name in verdict.where("loss", SHOWN) if "loss" in verdict.faults else ():
        sentence = f"node {node} never delivered {_m(name)}, which was sent to it"
        found.append(
            {"step": None, "node": node, "effect": _m(name), "cause": None, "sentence": sentence}
        )
    return sorted(found, key=lambda v: len(steps) if v["step"] is None else v["step"])


def _delivery(steps: Sequence[Step], node: int, name: str, which: int = 1) -> int | None:
    """The step in which a process delivers a message, for the first or another time."""
    for number, step in enumerate(steps):
        if step.node == node and name in step.delivers:
            which -= step.delivers.count(name)
            if which <= 0:
                return number
    return None


def _m(name: tuple[int, int]) -> str:
    return f"m({name[0]},{name[1]})"
