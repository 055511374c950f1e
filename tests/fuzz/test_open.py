"""Experiments within what the daisy promises in which it still fails; docs/groups.md tells why.

Each must go on failing: one that does not belongs in the corpus.
"""

import tomllib
from pathlib import Path

import pytest

from testbed.fuzz import attempt

OPEN = sorted((Path(__file__).parent / "open").glob("*.toml"))


@pytest.mark.parametrize("file", OPEN, ids=lambda file: file.stem)
def test_it_goes_wrong_within_what_is_promised(file: Path) -> None:
    trial = attempt(tomllib.loads(file.read_text()))
    assert trial is not None, "it is beyond what is promised"
    assert trial.wrong is not None, "it goes wrong no longer: it belongs in the corpus"
