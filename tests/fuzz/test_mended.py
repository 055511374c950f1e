"""Experiments in which the daisy once failed within what it promises, as fuzzing has found them."""

import pytest

from testbed.fuzz import attempt
from tests.fuzz.daisies import MENDED, mended


@pytest.mark.parametrize("name", sorted(file.stem for file in MENDED.glob("*.toml")))
def test_nothing_goes_wrong(name: str) -> None:
    trial = attempt(mended(name))
    assert trial is not None, "it is beyond what is promised"
    assert trial.wrong is None, trial.sentence
