"""From a document to an experiment, to its run, to the run's log."""

import json
from pathlib import Path
from typing import Any

from testbed.experiment import Experiment, parse
from testbed.progress import silent
from testbed.run import Run, run_experiment

SMALL: dict[str, Any] = {
    "name": "small",
    "protocol": [{"name": "overlay"}, {"name": "timestamp"}],
    "topology": {"model": "pure-random", "nodes": 8, "edge_probability": 0.5},
    "workload": {"model": "bursts", "senders": 3, "burst": 2, "duration_ms": 2},
}


def parsed(document: dict[str, Any], **tables: Any) -> Experiment:
    """The one experiment that a document describes, with some tables replaced."""
    (experiment,) = parse({**document, **tables}, Path(f"{document['name']}.toml"))
    return experiment


def run(experiment: Experiment, runs: Path) -> Run:
    """Run an experiment below a directory."""
    return run_experiment(experiment, runs, silent)


def log_of(run: Run) -> Path:
    """The event log of a simulated run."""
    return run.path / "events" / "nodes.jsonl"


def events_of(run: Run) -> list[dict[str, Any]]:
    """The lines of a simulated run's event log."""
    return [json.loads(line) for line in log_of(run).open()]
