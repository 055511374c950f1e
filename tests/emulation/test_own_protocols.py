"""Protocols in files of their own, outside the checkout, in the guest: good ones and bad ones."""

from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.plugins.bank import BAD, bad_file, blamed
from tests.plugins.own import written

pytestmark = pytest.mark.emulation
SAMPLE = ("computes", "to-itself", "exits-at-once")


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
    for name, end, sentence in zip(SAMPLE, ends, said.err.splitlines(), strict=True):
        assert f"{name} failed in process" in sentence
        assert BAD[name].words in sentence
        assert end in sentence
