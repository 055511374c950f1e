"""One submission from its text to its grade, tier by tier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from testbed.grade.answers import expected_answers, judge, read_answers
from testbed.grade.cells import Cells
from testbed.grade.lab import Lab, Tier
from testbed.grade.result import Grade, Result
from testbed.grade.submission import Submission
from testbed.grade.tiers import Trials
from testbed.progress import Tick

Told = Callable[[Result], None]


def grade(
    lab: Lab,
    submission: Submission,
    cells: Cells,
    secret: str = "",
    *,
    personal: bool = True,
    examples: bool = True,
    known: Sequence[Result] = (),
    tell: Told = lambda result: None,
    tick: Tick = lambda done, of: None,
) -> Grade:
    """Grade a submission; ``tell`` is told each tier's result, and what is ``known`` is not redone.

    If not ``personal``, the files are those of the lab as they are: so its own solutions are graded.
    If not ``examples``, what goes wrong is not made small, which takes most of the time.
    """
    done = {result.tier: result for result in known}
    trials: Trials | None = None
    expected: dict[str, Any] | None = None
    results = []
    for tier in lab.tiers:
        result = done.get(tier.name)
        if result is None and tier.kind == "answers":
            if expected is None:
                student = submission.student if personal else None
                expected = expected_answers(lab, secret, student)
            result = _answers(lab, tier, submission, expected)
        elif result is None:
            trials = trials or Trials(lab, submission, secret, cells, examples)
            result = trials.judge(tier, tick)
        results.append(result)
        if tier.name not in done:
            tell(result)
    return Grade(submission.student, submission.sha256, tuple(results))


def _answers(lab: Lab, tier: Tier, submission: Submission, expected: dict[str, Any]) -> Result:
    text = submission.texts[lab.also or lab.submission]
    return judge(tier, read_answers(text), expected)
