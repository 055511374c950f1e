"""Every erratum goes wrong as printed, for the reason that is given, and is right when repaired."""

import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from scripts.reproductions.errata.cases import CASES, DIRECTORY
from testbed.live.session import Session
from tests.experiments import run

NAMES = sorted(CASES)


def test_every_erratum_has_an_experiment_and_every_experiment_an_erratum() -> None:
    assert {f"{name}.toml" for name in CASES} == {file.name for file in DIRECTORY.iterdir()}


@pytest.mark.parametrize("name", NAMES)
def test_the_printed_version_goes_wrong_and_the_repair_does_not(name: str, tmp_path: Path) -> None:
    printed, repaired = CASES[name].experiments()
    assert printed.protocol.name.startswith("broken-")
    assert repaired.protocol in printed.protocol.__bases__
    assert CASES[name].is_shown(run(printed, tmp_path), run(repaired, tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_both_are_run_with_the_same_settings(name: str) -> None:
    """But for the one that is the repair."""
    document = tomllib.loads(CASES[name].file.read_text())
    printed, repaired = ({**table, "name": ""} for table in document["protocol"])
    assert repaired == {**printed, **({"numbered": True} if name == "not-fifo" else {})}


@pytest.mark.parametrize("name", NAMES)
def test_no_channel_does_what_the_protocol_does_not_allow_for(name: str) -> None:
    """What comes from one process comes in order, if that is assumed."""
    for number, experiment in enumerate(CASES[name].experiments()):
        if not experiment.protocol.needs_fifo(experiment.settings):
            continue
        seen = Session(CASES[name].file).run(number, [])
        received: dict[tuple[int, int], list[int]] = defaultdict(list)
        for step in seen["steps"]:
            if step["copy"] is not None:
                copy = seen["copies"][step["copy"]]
                received[copy["sender"], copy["receiver"]].append(step["copy"])
        assert all(numbers == sorted(numbers) for numbers in received.values())
