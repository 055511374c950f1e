"""Exit status: 0, 1 for a violation and nothing else, 2 for what could not be done."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from testbed.commands.ending import Terminated, status_of
from testbed.runs.directory import RunDirectory
from tests.experiments import SMALL


def raising(error: BaseException) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


def exiting() -> int:
    os._exit(0)


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (raising(SystemExit(0)), 2, "ended the program with status 0"),
        (exiting, 2, "ended the program with status 0"),
        (raising(MemoryError()), 2, "not enough memory"),
        (raising(KeyboardInterrupt()), 130, "interrupted"),
        (raising(Terminated(signal.SIGTERM)), 143, "interrupted"),
        (raising(OSError(28, "No space left", "runs")), 2, "runs: no space left; make room"),
        (raising(OSError(40, "Too many levels", "runs")), 2, "runs: too many levels; choose"),
    ],
)
def test_every_end_has_a_status_and_a_sentence(
    command: Callable[[], int], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(command) == status
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [KeyError(3), OSError(5, "Input/output error"), TypeError("a\nb")]
)
def test_a_bug_is_one_sentence_and_keeps_its_traceback(
    error: Exception,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert status_of(raising(error)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    (file,) = tmp_path.iterdir()
    assert line.endswith(str(file))
    assert "Traceback" in file.read_text()


@pytest.mark.parametrize("arguments", [["protocols"], ["protocols", "--json"], ["run"]])
def test_nobody_reads_what_is_said(arguments: list[str], tmp_path: Path) -> None:
    if arguments == ["run"]:
        (tmp_path / "small.toml").write_text(tomli_w.dumps(SMALL))
        arguments = ["run", str(tmp_path / "small.toml"), "--no-digest", "--runs", str(tmp_path)]
    reader, writer = os.pipe()
    os.close(reader)
    found = subprocess.run(
        [sys.executable, "-m", "testbed", *arguments],
        check=False,
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    assert (found.returncode, found.stderr) == (2, b"")


@pytest.mark.parametrize(
    ("number", "status", "became"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "interrupted"),
        (signal.SIGHUP, 129, "interrupted"),
        (signal.SIGKILL, -9, "dead"),
    ],
)
def test_a_signal_ends_a_run_that_says_so(
    number: int, status: int, became: str, tmp_path: Path
) -> None:
    long: dict[str, Any] = {**SMALL, "name": "long", "protocol": {"name": "overlay"}}
    long["workload"] = {"model": "bursts", "senders": 8, "duration_ms": 2_000.0}
    long["topology"] = {**SMALL["topology"], "nodes": 64}
    file = tmp_path / "long.toml"
    file.write_text(tomli_w.dumps(long))
    command = [sys.executable, "-m", "testbed", "run", str(file), "--runs", str(tmp_path / "runs")]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=usual_signals,  # noqa: PLW1509
    ) as process:
        deadline = time.monotonic() + 60
        while not (found := list(tmp_path.glob("runs/long/2*/network.json"))):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        run = found[0].parent
        assert RunDirectory(run).status == "running"
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
    assert process.returncode == status, error
    assert b"Traceback" not in error
    assert RunDirectory(run).status == became
    if became != "dead":
        assert json.loads((run / "manifest.json").read_text())["status"] == became


def usual_signals() -> None:
    """A shell's background job, and so all that it starts, ignores Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
