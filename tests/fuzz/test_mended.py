"""Experiments in which the daisy once failed within what it promises, as fuzzing has found them."""

from pathlib import Path

import pytest

from testbed.experiment import read_document
from testbed.fuzz import attempt
from tests.fuzz.daisies import MENDED, mended

OPEN = MENDED.parent / "open"


@pytest.mark.parametrize("name", sorted(file.stem for file in MENDED.glob("*.toml")))
def test_nothing_goes_wrong(name: str) -> None:
    trial = attempt(mended(name))
    assert trial is not None, "it is beyond what is promised"
    assert trial.wrong is None, trial.sentence


@pytest.mark.parametrize("file", sorted(OPEN.glob("*.toml")), ids=lambda file: str(file.stem))
@pytest.mark.xfail(strict=True, reason="docs/groups.md tells of it among what is known")
def test_what_is_not_mended_yet(file: Path) -> None:
    trial = attempt(read_document(file))
    assert trial is not None, "it is beyond what is promised"
    assert trial.wrong is None, trial.sentence
