"""What a student should find: the student's own experiments are run, with the patience asked for."""

import tempfile
from pathlib import Path
from typing import Any

from testbed.experiment.document import parse, read_document
from testbed.run import run_experiment

SHORT_MS = 150


def expected(lab: Path) -> dict[str, Any]:
    """The right answers, by the names that answers.toml has for them."""
    one, short = summary(lab / "crash.toml"), summary(lab / "crash.toml", SHORT_MS)
    two = summary(lab / "two-crashes.toml")
    patient, hasty = summary(lab / "pause.toml"), summary(lab / "pause.toml", SHORT_MS)
    return {
        "verdict": one["verdict"],
        "cut_off_ms": one["recovery_ms_max"],
        "cut_off_short_ms": short["recovery_ms_max"],
        "two_verdict": two["verdict"],
        "two_cut_off_ms": two["recovery_ms_max"],
        "patient_view_changes": patient.get("view_changes", 0),
        "hasty_view_changes": hasty.get("view_changes", 0),
        "patient_delay_ms": patient["delay_ms_max"],
        "hasty_delay_ms": hasty["delay_ms_max"],
    }


def summary(file: Path, patience_ms: float | None = None) -> dict[str, Any]:
    """The figures of a run, with another patience than the file's."""
    document = read_document(file)
    if patience_ms is not None:
        document["protocol"]["patience_ms"] = patience_ms
    with tempfile.TemporaryDirectory() as runs:
        return run_experiment(parse(document, file)[0], Path(runs), lambda *_: None).summary
