"""The labs: what they give as the expected result is what comes out."""

import re
from pathlib import Path

import pytest

from testbed.protocols.broken import BROKEN
from testbed.run import run_experiment
from testbed.sweep.points import load_sweep
from tests.command_line import CommandLine

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "labs.md").read_text()
LABS = ROOT / "scripts" / "experiments" / "labs"


def test_an_answer_comes_before_its_question(tmp_path: Path, testbed: CommandLine) -> None:
    command = ("run", LABS / "order.toml", "--no-digest", "--runs", tmp_path)
    shown = testbed(*command, status=1).out
    assert re.search(r"causal order +invalid +valid", shown)
    assert "node 2 delivered m(1,1) before m(0,1)" in shown


def test_channels_make_the_difference_that_is_told(tmp_path: Path) -> None:
    verdicts: dict[tuple[str, bool, bool], set[str]] = {}
    for experiment in load_sweep(LABS / "channels.toml").points.values():
        run = run_experiment(experiment, tmp_path, lambda *_: None)
        loses = any(getattr(fault, "rate", 0) for fault in experiment.faults[1:])
        key = (experiment.protocol.name, experiment.channel is not None, loses)
        verdicts.setdefault(key, set()).add(run.verdict.verdict)
    assert verdicts == {
        (protocol, reliable, loses): {"valid" if good else "invalid"}
        for protocol in ("overlay", "timestamp")
        for reliable in (False, True)
        for loses in (False, True)
        for good in [reliable or (protocol == "timestamp" and not loses)]
    }


def test_the_sweep_of_costs_is_one() -> None:
    assert len(load_sweep(LABS / "cost.toml").points) == 24


@pytest.mark.parametrize("name", re.findall(r"`(broken-[\w-]+)`", TEXT))
def test_mistakes_are_found(name: str, testbed: CommandLine) -> None:
    assert name in BROKEN
    testbed("explore", "--protocol", name, "--messages", 3, status=1)


def test_fifo_order_is_not_causal_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "`testbed new protocol fifo`" in TEXT
    testbed("new", "protocol", "fifo")
    said = testbed("explore", "--protocol", "./fifo.py", status=1)
    assert "the oracle: node 2 delivered m(1,1) before m(0,1)" in said.out
