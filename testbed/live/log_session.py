"""A run that was made before, on any engine, stepped through by its event logs."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.check import Verdict, check_run
from testbed.errors import UserError
from testbed.experiment.network import Network
from testbed.live.session import Table, described_network, violations
from testbed.live.trace import MOST_STEPS, Copy, Step
from testbed.runs.directory import RunDirectory

AFTER = MOST_STEPS // 10  # events that are shown after the first violation


class LogSession:
    """Shows the event logs of a run directory: sends, holds, deliveries, and what else was noted."""

    def __init__(self, path: Path) -> None:
        self.directory = RunDirectory(path)
        self.manifest = self.directory.manifest

    def run(self, protocol: int, faults: list[Table]) -> dict[str, Any]:
        """The steps of the logs, in order of time."""
        if faults:
            raise UserError(f"{self.directory.path}: what has happened cannot be changed")
        verdict = check_run(self.directory.path)
        try:
            every = self._events()
            events = window(every, verdict)
            steps = [Step(e["t"], e["node"], e["event"], [_words(e)]) for e in events]
            copies = _copies(events, steps)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{self.directory.path}: its event logs are damaged ({error!r}); "
                "`testbed check` says where"
            ) from None
        content = json.loads(self.directory.network_file.read_text("utf-8"))
        return {
            "protocols": [self.manifest["protocol"]],
            "protocol": 0,
            "faults": [],
            "changeable": False,
            "failure": self._left_out(len(every), every[:1] == events[:1]),
            "title": self.directory.path.name,
            "seed": self.manifest["seed"],
            **described_network(Network.from_json(content)),
            "steps": [vars(step) for step in steps],
            "copies": [vars(copy) for copy in copies],
            "hops": [],
            "verdict": verdict.verdict,
            "sentences": verdict.explain(20),
            "violations": violations(verdict, steps),
        }

    def save(self, protocol: int, faults: list[Table]) -> Path:
        """There is nothing to save."""
        raise UserError(f"{self.directory.path}: what has happened cannot be changed")

    def _events(self) -> list[dict[str, Any]]:
        """In order of time; of one process in its own order."""
        events = [
            json.loads(line)
            for file in self.directory.event_logs
            for line in file.read_text("ascii").splitlines()
        ]
        return sorted(events, key=lambda event: event["t"])

    def _left_out(self, count: int, first: bool) -> str:
        """What the page lacks, if it lacks anything, and where that is."""
        if count <= MOST_STEPS:
            return ""
        which = "the first" if first else "those around the first violation"
        return (
            f"the run has {count:,} events; here are {which} {MOST_STEPS:,}, and on the page that "
            f"`testbed report {self.directory.path}` writes, up to a million"
        )


def window(events: list[dict[str, Any]], verdict: Verdict) -> list[dict[str, Any]]:
    """As many events as a page holds: those that lead to the first violation, or else the first."""
    if len(events) <= MOST_STEPS:
        return events
    wrong = {(found.process, *found.effect) for found in verdict.violations()}
    where = (
        number
        for number, event in enumerate(events)
        if event["event"] == "deliver" and (event["node"], event["source"], event["seq"]) in wrong
    )
    end = max(MOST_STEPS, min(next(where, 0) + AFTER, len(events)))
    return events[end - MOST_STEPS : end]


def _copies(events: list[dict[str, Any]], steps: list[Step]) -> list[Copy]:
    """An arrow for each receipt of a message, from its send."""
    copies: list[Copy] = []
    sent: dict[str, int] = {}
    received: defaultdict[int, set[str]] = defaultdict(set)
    for number, event, name in _about_messages(events):
        step = steps[number]
        if event["event"] == "send":
            sent[name] = number
            continue
        if event["event"] == "hold":
            waits = event["for"]
            step.holds.append((name, None if waits is None else f"m({waits[0]},{waits[1]})"))
        else:
            step.delivers.append(name)
        if name in sent and name not in received[step.node] and event["source"] != step.node:
            received[step.node].add(name)
            begun = sent[name]
            at = steps[begun].t
            copy = Copy(
                event["source"], step.node, name, "", name, 0, begun, at, step.t, got=number
            )
            steps[begun].sends.append(len(copies))
            copies.append(copy)
    return copies


def _about_messages(events: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any], str]]:
    for number, event in enumerate(events):
        if event["event"] in ("send", "hold", "deliver"):
            yield number, event, f"m({event['source']},{event['seq']})"


def _words(event: dict[str, Any]) -> str:
    process, name = f"process {event['node']}", f"m({event.get('source')},{event.get('seq')})"
    match event["event"]:
        case "send":
            to = "everybody" if event["to"] is None else event["to"]
            return f"the application of {process} multicasts {name} to {to}"
        case "deliver":
            return f"{process} delivers {name}"
        case "hold":
            waits = event["for"]
            cause = "something" if waits is None else f"m({waits[0]},{waits[1]})"
            return f"{process} holds {name} back until {cause} is delivered"
    facts = {k: v for k, v in event.items() if k not in ("t", "node", "event")}
    told = ", ".join(f"{key} {value}" for key, value in facts.items())
    return f"{process}: {event['event']}" + (f" ({told})" if told else "")
