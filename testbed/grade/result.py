"""What came of a submission: one ``Result`` for each tier, as it is kept and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Result:
    """The outcome of one tier. ``sentence`` is for the student; ``aside`` is for the teacher alone."""

    tier: str
    kind: str
    points: int
    score: int
    sentence: str
    repeat: str = ""  # a command that shows the same
    file: str = ""  # the smallest experiment found that goes wrong
    diagram: str = ""
    aside: str = ""

    @property
    def passed(self) -> bool:
        """Whether all points were given."""
        return self.score == self.points

    @classmethod
    def of(cls, content: dict[str, Any]) -> Self:
        """A result that was kept."""
        return cls(**content)

    def to_json(self) -> dict[str, Any]:
        """In plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Grade:
    """All results of a student; not ``complete`` if it was interrupted."""

    student: str
    sha256: str
    results: tuple[Result, ...]
    complete: bool = True

    @property
    def score(self) -> int:
        """The points in all."""
        return sum(result.score for result in self.results)

    @property
    def sentence(self) -> str:
        """The first thing that is wrong, in words."""
        return next((r.sentence for r in self.results if not r.passed), "")


def share(points: int, right: int, of: int) -> int:
    """Points in proportion, rounded down."""
    return points * right // of if of else 0


def half_and_half(points: int, right: int, of: int) -> int:
    """Half of the points in proportion and the other half if all is right: luck is not enough."""
    return points if right == of else points * right // (2 * of)


def lost(results: Sequence[Result]) -> list[str]:
    """The tiers that were not passed."""
    return [result.tier for result in results if not result.passed]
