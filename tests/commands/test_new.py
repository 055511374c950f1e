"""``testbed new``: what it writes runs, and its tests say what is still to be done."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import CommandLine


def test_a_new_protocol_runs_and_so_do_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    said = testbed("new", "protocol", "my-own")
    assert "testbed explore --protocol ./my_own.py" in said.out
    assert sorted(file.name for file in tmp_path.iterdir()) == ["my_own.py", "test_my_own.py"]
    testbed("explore", "--protocol", "./my_own.py:MyOwn", "--nodes", 2)
    assert "my-own" in testbed("protocols", "my_own.py").out
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tmp_path],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "1 passed, 1 xfailed" in tests.stdout
    testbed("new", "protocol", "my-own", status=2)


@pytest.mark.parametrize("name", ["timestamp", "My Own", "../x", "", "x" * 60])
def test_a_name_that_cannot_be_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    assert testbed("new", "protocol", name, status=2).err.count("\n") == 1
    assert not list(tmp_path.iterdir())
