"""The errata: what the papers print, why that is wrong, and the experiment that shows it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from testbed.experiment import Experiment, load
from testbed.run import Run

DIRECTORY = Path(__file__).parents[2] / "experiments" / "errata"


@dataclass(frozen=True)
class Case:
    """One erratum; texts are Markdown."""

    name: str
    where: str  # paper, section and line
    title: str  # what the paper has, in short
    printed: str
    wrong: str
    repair: str
    shows: str  # what the oracle says of the run as printed
    draws: tuple[str, ...] = ()  # classes of messages that belong into the diagram
    from_ms: float = 0.0
    to_ms: float = float("inf")
    ticket: int | None = None  # whose owners the diagram shows

    @property
    def file(self) -> Path:
        """The experiment: as printed, and repaired."""
        return DIRECTORY / f"{self.name}.toml"

    def experiments(self) -> tuple[Experiment, Experiment]:
        """As printed, and repaired."""
        printed, repaired = load(self.file)
        return printed, repaired

    def is_shown(self, printed: Run, repaired: Run) -> bool:
        """Whether the one went wrong for the reason that is given, and the other did not."""
        told = any(sentence.startswith(self.shows) for sentence in printed.verdict.explain())
        return printed.verdict.verdict == "invalid" and told and repaired.verdict.ok


def _read() -> dict[str, Case]:
    tables = tomllib.loads(Path(__file__).with_name("errata.toml").read_text())["erratum"]
    cases = [Case(**table | {"draws": tuple(table.get("draws", ()))}) for table in tables]
    return {case.name: case for case in cases}


CASES = _read()
