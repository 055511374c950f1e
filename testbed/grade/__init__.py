"""Grading: submissions of a lab, each behind a wall, judged on this side of it.

``lab`` and ``submission`` say what is graded; ``tiers`` and ``answers`` judge it, ``result`` keeps
what came of it. The code of a submission runs in ``cells``, which are forked from a ``zygote``
(``inside``), and ``remote`` is the class through which explorer, simulator and oracle see it. See
docs/security.md."""

from testbed.grade.grader import grade
from testbed.grade.lab import Lab
from testbed.grade.result import Grade, Result
from testbed.grade.selftest import self_test
from testbed.grade.submission import Submission

__all__ = ["Grade", "Lab", "Result", "Submission", "grade", "self_test"]
