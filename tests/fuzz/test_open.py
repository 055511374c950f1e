"""Experiments in which the daisy fails within what it promises: found by fuzzing, not mended yet."""

import tomllib
from pathlib import Path

import pytest

from testbed.fuzz import Trial, attempt

FILES = sorted((Path(__file__).parent / "open").glob("*.toml"))


every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def tried(file: Path) -> Trial | None:
    return attempt(tomllib.loads(file.read_text()))


@every_file
def test_it_is_within_what_is_promised(file: Path) -> None:
    assert tried(file) is not None


@pytest.mark.xfail(
    strict=True, reason="a known violation; when it is mended, move it to the scenes"
)
@every_file
def test_nothing_goes_wrong(file: Path) -> None:
    trial = tried(file)
    assert trial is None or trial.wrong is None
