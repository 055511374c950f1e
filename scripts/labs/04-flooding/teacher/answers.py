"""What a student should find: the student's own experiments are run and looked at."""

import tempfile
from pathlib import Path
from typing import Any

from testbed.experiment import load
from testbed.run import run_experiment
from testbed.sweep.points import load_sweep

HEADER = 32


def expected(lab: Path) -> dict[str, Any]:
    """The right answers, by the names that answers.toml has for them."""
    with tempfile.TemporaryDirectory() as runs:
        overlay, timestamp = (
            run_experiment(experiment, Path(runs), lambda *_: None).summary
            for experiment in load(lab / "cost.toml")
        )
        words = dict(channels(lab / "channels.toml", Path(runs)))
    copies = overlay["copies"] / overlay["multicasts"]
    others, vector = overlay["nodes"] - 1, 4 * overlay["nodes"]
    # copies · (header + p) = others · (header + vector + p)
    equal = (others * (HEADER + vector) - copies * HEADER) / (copies - others)
    return words | {
        "flooding_copies": copies,
        "vector_bytes": timestamp["control_bytes"] // timestamp["copies"],
        "flooding_bytes": overlay["bytes"] / overlay["multicasts"],
        "timestamp_bytes": timestamp["bytes"] / timestamp["multicasts"],
        "equal_at_payload": equal,
    }


def channels(file: Path, runs: Path) -> list[tuple[str, str]]:
    """The verdicts of the sweep, by what is asked for."""
    found: dict[str, set[str]] = {}
    for experiment in load_sweep(file).points.values():
        loses = any(getattr(fault, "rate", 0) for fault in experiment.faults[1:])
        channel = "reliable" if experiment.channel else "raw"
        name = f"{experiment.protocol.name}_{channel}" + "_loss" * loses
        verdict = run_experiment(experiment, runs, lambda *_: None).verdict.verdict
        found.setdefault(name, set()).add(verdict)
    return [(name, verdicts.pop()) for name, verdicts in found.items() if len(verdicts) == 1]
