"""The corpus: scenes in which the daisy once failed within what it promises, and does not any more."""

import tomllib
from pathlib import Path

import pytest

from testbed.fuzz import attempt, corpus
from testbed.fuzz.corpus import TIMING, scenes
from testbed.fuzz.elements import nodes_of
from testbed.protocols.daisy.levels import REMOVED

ROOT = Path(__file__).parents[2]
FILES = sorted(Path(corpus.__file__).parent.glob("*.toml"))


BEYOND = {
    "daisy-answered-by-way-of-another",
    "daisy-back-before-it-was-relayed",
    "daisy-found-by-another-group",
    "daisy-kept-for-one-that-is-back-above",
    "daisy-merged-and-not-heard-of",
    "daisy-overtaken",
    "daisy-overtaken-by-an-answer",
}


@pytest.mark.parametrize("name", scenes())
def test_nothing_goes_wrong(name: str) -> None:
    trial = attempt(scenes()[name], beyond=True)
    assert trial is not None
    assert trial.wrong is None, trial.sentence


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_scene_says_what_went_wrong_and_runs_as_it_stands(file: Path) -> None:
    text = file.read_text()
    document = tomllib.loads(text)
    assert text.startswith(("# Once: ", "# Rare: "))
    assert (document["name"], document["protocol"]["name"]) == (file.stem, "daisy")
    assert nodes_of(document) <= 9
    explicit = scenes()[file.stem]
    assert attempt(document, beyond=True) == attempt(explicit, beyond=True)
    assert (attempt(document) is None) == (file.stem in BEYOND)
    assert {*TIMING} <= explicit["protocol"].keys()


def test_a_level_is_removed() -> None:
    trial = attempt(scenes()["daisy-level-removed"])
    assert trial is not None
    assert REMOVED in trial.reached


def test_the_corpus_is_part_of_the_wheel() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert data["tool"]["setuptools"]["package-data"]["testbed.fuzz.corpus"] == ["*.toml"]
