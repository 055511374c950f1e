"""What a student should find: the student's own experiment is run and looked at."""

import json
import tempfile
from pathlib import Path
from typing import Any

from testbed.experiment import load
from testbed.run import run_experiment
from testbed.sweep.points import load_sweep

CAROL, QUESTION, ANSWER = 2, (0, 1), (1, 1)


def expected(lab: Path) -> dict[str, Any]:
    """The right answers, by the names that answers.toml has for them."""
    with tempfile.TemporaryDirectory() as runs:
        impatient, timestamp = (
            run_experiment(experiment, Path(runs), lambda *_: None)
            for experiment in load(lab / "order.toml")
        )
        at, later = times(impatient.path, "deliver"), times(timestamp.path, "deliver")
        held = times(timestamp.path, "hold")
        sixty = load_sweep(lab / "seeds.toml").points.values()
        verdicts = [run_experiment(e, Path(runs), lambda *_: None).verdict for e in sixty]
    means = [run.summary["delay_ms_mean"] for run in (impatient, timestamp)]
    return {
        "first_at_carol": "question" if at[QUESTION] < at[ANSWER] else "answer",
        "question_at_carol_ms": at[QUESTION],
        "answer_at_carol_ms": at[ANSWER],
        "waited_for": "m(0,1)",
        "wait_ms": later[ANSWER] - held[ANSWER],
        "longer_mean_ms": means[1] - means[0],
        "control_bytes_per_copy": timestamp.summary["control_bytes"] // timestamp.summary["copies"],
        "answer_first": sum(not verdict.ok for verdict in verdicts),
    }


def times(run: Path, event: str) -> dict[tuple[int, int], float]:
    """When such events happened at Carol, in milliseconds, by message."""
    lines = (line for file in run.glob("events/*.jsonl") for line in file.read_text().splitlines())
    events = [json.loads(line) for line in lines]
    return {
        (e["source"], e["seq"]): e["t"] / 1e6
        for e in events
        if e["node"] == CAROL and e["event"] == event
    }
