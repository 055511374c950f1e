"""Every erratum goes wrong as printed, for the reason that is given, and is right when repaired."""

import tomllib
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from scripts.reproductions.errata import chapter
from scripts.reproductions.errata.cases import CASES, DIRECTORY
from scripts.reproductions.errata.diagram import diagram
from scripts.reproductions.errata.execution import execution
from testbed.errors import UserError
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


def made_up(monkeypatch: pytest.MonkeyPatch, shown: bool) -> list[Any]:
    """A chapter of two errata on two engines, of which one may not go wrong; its table's rows."""

    def compute(what: str, function: Any, pieces: dict[str, Any], options: Namespace) -> Any:
        found = {"printed": "invalid: …", "repaired": "valid: …", "shown": True}
        return {
            n: {**found, "shown": shown or piece[1] != "virtual"} for n, piece in pieces.items()
        }

    monkeypatch.setattr(chapter, "compute", compute)
    options = Namespace(names=["rst", "overlay"], engine=["simulate", "virtual"])
    made = chapter.reproduce(options)
    assert [erratum.name for erratum in made.errata] == ["overlay", "rst"]
    assert chapter.all_shown(made) == shown
    return [*made.tables[0].rows]


def test_a_chapter_says_which_erratum_is_shown_on_which_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [row[-2:] for row in made_up(monkeypatch, shown=True)] == [["yes", "yes"]] * 2
    rows = made_up(monkeypatch, shown=False)
    assert [row[-2:] for row in rows] == [["yes", "not shown"]] * 2


def test_an_erratum_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="no erratum 'rts'; there are overlay, timestamp, rst"):
        chapter.chosen(Namespace(names=["rst", "rts"]))


def test_a_reason_that_does_not_come_out_is_not_shown(tmp_path: Path) -> None:
    case = CASES["rst"]
    printed, repaired = (run(experiment, tmp_path) for experiment in case.experiments())
    assert not case.is_shown(repaired, repaired)
    assert not case.is_shown(printed, printed)
    assert not CASES["no-stamps"].is_shown(printed, repaired)


def test_a_diagram_has_what_goes_wrong_and_is_the_same_each_time() -> None:
    printed, repaired = (execution(CASES["rst"], e) for e in CASES["rst"].experiments())
    assert [(s.node, s.delivers) for s, wrong in printed.steps if wrong] == [(2, ["m(1,1)"])]
    assert not any(wrong for _, wrong in repaired.steps)
    assert [m.name for m in printed.multicasts] == ["m(0,1)", "m(1,1)"]
    drawn = diagram(CASES["rst"])
    assert drawn == diagram(CASES["rst"])
    assert b"m(1,1)" in drawn


def test_a_diagram_has_what_is_lost_and_what_is_never_delivered() -> None:
    printed = execution(CASES["early"], CASES["early"].experiments()[0])
    assert printed.never == [(1, "m(3,1)"), (1, "m(4,1)")]
    to_server = [got for copy, got in printed.copies if (copy.name, copy.receiver) == ("m(3,1)", 2)]
    assert len(to_server) == 2
    assert to_server[0] == float("inf") > to_server[1]  # dropped, and sent again


def test_a_diagram_has_the_two_owners_of_a_ticket() -> None:
    printed, repaired = (execution(CASES["leaving"], e) for e in CASES["leaving"].experiments())
    first, second = sorted(printed.owned, key=lambda owned: owned.since)
    assert (first.process, second.process) == (1, 2)
    assert second.since < first.until
    first, second = sorted(repaired.owned, key=lambda owned: owned.since)
    assert first.until <= second.since
