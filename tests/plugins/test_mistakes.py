"""Whatever a protocol does wrong is told in one sentence, on every engine, and harms no other."""

from pathlib import Path

import pytest

from scripts.hostility.bank import BAD, bad_file, blamed
from testbed.fuzz import shrink, trial
from testbed.plugins import limits
from tests.command_line import CommandLine

EVERY_ONE = pytest.mark.parametrize("name", BAD)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(limits, "TICK_S", 0.05)
    monkeypatch.setattr(limits, "COMPUTING_S", 0.2)
    monkeypatch.setattr(limits, "TICKS", 1000)
    monkeypatch.setattr(trial, "TICKS", 1)
    monkeypatch.setattr(shrink, "COSTLY_TRIAL", shrink.TRIALS)


@EVERY_ONE
def test_a_run_says_what_is_wrong_and_runs_the_others(
    name: str, tmp_path: Path, testbed: CommandLine
) -> None:
    file, bad = bad_file(tmp_path, name), BAD[name]
    said = testbed("run", "own.toml", "--no-digest", status=1 if bad.judged else 2)
    assert "timestamp" in said.out
    assert "Traceback" not in said.err
    if not bad.judged:
        (sentence,) = said.err.splitlines()
        assert bad.words in sentence
        assert sentence.endswith(blamed(file))


@EVERY_ONE
def test_the_explorer_finds_it(name: str, tmp_path: Path, testbed: CommandLine) -> None:
    file, bad = bad_file(tmp_path, name), BAD[name]
    status = 2 if "made" in name else 0 if bad.explored == "valid" else 1
    said = testbed("explore", "--protocol", "fifo.py", "--nodes", 2, "--messages", 2, status=status)
    if bad.explored:
        assert bad.explored in said.out
    else:
        assert bad.words in said.out + said.err
        assert blamed(file) in said.out + said.err


@EVERY_ONE
def test_the_fuzzer_finds_it(name: str, tmp_path: Path, testbed: CommandLine) -> None:
    file, bad = bad_file(tmp_path, name), BAD[name]
    seeds = ("--first-seed", 3, "--seeds", 2)
    said = testbed("fuzz", "--protocol", "fifo.py", *seeds, status=2 if "made" in name else 1)
    assert (bad.fuzzed or bad.words) in said.out + said.err
    assert bad.fuzzed or blamed(file) in said.out + said.err
