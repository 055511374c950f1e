"""A submission on emulated hosts: its file is loaded in the guest, and never by the grader."""

from pathlib import Path

import pytest

from testbed.grade import Lab, Submission, grade
from testbed.grade.cells import Cells
from tests.grade.conftest import BUDGET, causal

pytestmark = pytest.mark.emulation
LAB = """
title = "Emulated"
submission = "protocol.py"
[[tier]]
name = "on emulated hosts"
kind = "run"
points = 10
experiment = "budget.toml"
engine = "virtual"
"""
# In a cell there are no engines; where there are, this is the guest, or it should not be here.
ELSEWHERE = """
import sys

if "testbed.run" in sys.modules or "testbed.grade.tiers" in sys.modules:
    open({grader!r}, "w").close()
"""
DIFFERENT = """
import sys

GUEST = "testbed.engines" in sys.modules
"""


def test_a_submission_on_emulated_hosts(tmp_path: Path) -> None:
    """A right one has its points; one that is only wrong there loses them."""
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "budget.toml").write_text(BUDGET)
    lab, touched = Lab.read(tmp_path), tmp_path / "touched"
    texts = {
        "right": causal(head=ELSEWHERE.format(grader=str(touched))),
        "two-faced": causal(head=DIFFERENT, receive="if GUEST: raise KeyError('seen')"),
    }
    with Cells() as cells:
        found = {
            name: grade(lab, Submission(name, {"protocol.py": text}), cells).results[0]
            for name, text in texts.items()
        }
    assert found["right"].passed, found["right"]
    assert not touched.exists()
    assert found["two-faced"].score == 0
    assert "on emulated hosts: causal failed in process" in found["two-faced"].sentence
    assert "KeyError: 'seen'" in found["two-faced"].sentence
