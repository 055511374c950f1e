"""Whether a lab tells right from wrong: its own solutions are graded and must score what ``lab.toml``
says."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from testbed.grade.cells import Cells
from testbed.grade.grader import grade
from testbed.grade.lab import TEACHER, Lab, Wrong
from testbed.grade.result import Grade, lost
from testbed.grade.submission import Submission
from testbed.progress import Progress, silent

REFERENCE = "reference"


def self_test(
    lab: Lab | Path, only: Collection[str] | None = None, progress: Progress = silent
) -> list[str]:
    """What is not as the lab says, in words; of ``only`` these files, or of all solutions."""
    if isinstance(lab, Path):
        lab = Lab.read(lab)
    solutions = [file for file in _solutions(lab) if only is None or file.name in only]
    differences: list[str] = []
    with Cells() as cells:
        for done, file in enumerate(solutions):
            progress(lab.name, done, len(solutions))
            solution = _submission(lab, file)
            grade_of = grade(lab, solution, cells, personal=False, examples=False)
            differences += _differences(lab, file, grade_of)
    return differences


def _solutions(lab: Lab) -> Iterator[Path]:
    suffix = Path(lab.submission).suffix
    yield lab.directory / TEACHER / f"{REFERENCE}{suffix}"
    yield from (lab.directory / TEACHER / "wrong" / name for name in sorted(lab.wrong))


def _submission(lab: Lab, file: Path) -> Submission:
    """A solution, with the answers beside it, or else those of the reference."""
    beside = [file.with_suffix(".toml"), lab.directory / TEACHER / f"{REFERENCE}.toml"]
    texts: dict[str, str | None] = {lab.submission: file.read_text(encoding="utf-8")}
    if lab.also:
        texts[lab.also] = next((f.read_text(encoding="utf-8") for f in beside if f.exists()), None)
    return Submission(file.stem, texts)


def _differences(lab: Lab, file: Path, found: Grade) -> Iterator[str]:
    wanted = lab.wrong.get(file.name) or Wrong(lost=(), score=lab.points)
    where = f"{lab.name}, {file.name}"
    if set(wanted.lost) != set(lost(found.results)):
        said = "; ".join(f"{r.tier}: {r.sentence} {r.aside}" for r in found.results if not r.passed)
        yield (
            f"{where} should lose {_list(wanted.lost)} and loses {_list(lost(found.results))}"
            f"{f' ({said})' if said else ''}"
        )
    elif wanted.score is not None and wanted.score != found.score:
        yield f"{where} should have {wanted.score} points and has {found.score}"


def _list(names: Collection[str]) -> str:
    return ", ".join(names) or "nothing"
