"""Protocols in files of their own, outside the checkout, in the guest: good ones and bad ones."""

import re
from pathlib import Path

import pytest

from scripts.hostility.bank import BAD, bad_file, blamed
from scripts.hostility.own import written
from scripts.hostility.remains import in_guest
from testbed.engines.virtual.kernel import Kernel
from tests.command_line import CommandLine

pytestmark = pytest.mark.emulation
NEWS = re.compile(r"testbed: \S+: \w+ \d+ %")  # of a run that goes on for some seconds
SAMPLE = ("raises-at-first", "swallows-everything", "slow-timers-for-ever", "exits-at-once")


def test_a_file_runs_in_the_guest_and_what_is_wrong_with_others_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    ends = []
    for name in SAMPLE:
        file = bad_file(tmp_path, name)
        ends.append(blamed(file).replace("fifo.py", f"{name}.py"))
        (tmp_path / f"{name}.py").write_text(file.read_text().replace('"fifo"', f'"{name}"'))
    written(tmp_path)
    tables = "".join(f'[[protocol]]\nname = "./{name}.py"\n' for name in SAMPLE)
    text = (tmp_path / "own.toml").read_text().replace('[[protocol]]\nname = "timestamp"\n', tables)
    (tmp_path / "own.toml").write_text(text)
    said = testbed("run", "own.toml", "--engine", "virtual", "--no-digest", "--json", status=2)
    (figures,) = said.json()
    assert (figures["protocol"], figures["verdict"]) == ("fifo", "valid")
    sentences = [line for line in said.err.splitlines() if not NEWS.match(line)]
    for name, end, sentence in zip(SAMPLE, ends, sentences, strict=True):
        assert f"{name} failed in process" in sentence
        assert BAD[name].words in sentence
        assert BAD[name].event in sentence
        assert end in sentence
    logs = tmp_path.glob("runs/own/*-swallows-everything-*/hosts/*.log")
    assert [bool(log.read_text()) for log in logs].count(True) == 1  # the others have not begun


def test_in_real_time_who_computes_is_not_taken_for_one_that_is_at_rest(kernel: Kernel) -> None:
    words = ("--only", "protocols", "--engines", "mininet", "--match", "computes")
    assert in_guest(*words, "--limit", 600) == 0
