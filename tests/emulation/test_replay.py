"""What fuzzing found in the simulator goes wrong in the same way in emulation."""

from pathlib import Path

import pytest

from testbed.experiment import load
from testbed.fuzz import Batch, Origin, shrunk, try_batch, write_example
from tests.command_line import CommandLine
from tests.experiments import run
from tests.live.test_session import TRIANGLE, session

pytestmark = pytest.mark.emulation


@pytest.mark.parametrize("protocol", ["broken-no-rescan", "broken-echo"])
def test_a_counter_example_is_repeated(protocol: str, tmp_path: Path, testbed: CommandLine) -> None:
    """One that waits for good, and one that would never come to an end."""
    tally = try_batch(Batch(protocol, tuple(map(Origin, range(1, 21)))))
    example = shrunk(protocol, tally.first_wrong)
    file = write_example(example, tmp_path)
    arguments = ["--engine", "virtual", "--no-digest", "--runs", str(tmp_path / "runs")]
    assert example.trial.sentence in testbed("run", file, *arguments, status=1).out


def test_what_explore_found_is_repeated(tmp_path: Path, testbed: CommandLine) -> None:
    file = tmp_path / "explored.toml"
    testbed("explore", "--protocol", "broken-late-update", "--save", file, status=1)
    arguments = ["--no-digest", "--runs", str(tmp_path / "runs")]
    emulated, simulated = (
        testbed("run", file, "--engine", engine, *arguments, status=1).out
        for engine in ("virtual", "simulate")
    )
    wrong = [line for line in simulated.splitlines() if "happened before" in line]
    assert wrong
    assert wrong == [line for line in emulated.splitlines() if "happened before" in line]


def test_what_was_done_by_hand_is_repeated(tmp_path: Path) -> None:
    shown = session(TRIANGLE, tmp_path)
    dropped = {"kind": "drop", "sender": 0, "receiver": 2, "count": 1}
    told = shown.run(0, [dropped])
    assert told["verdict"] == "invalid"
    (saved,) = load(shown.save(0, [dropped]), engine="virtual")
    emulated = run(saved, tmp_path)
    assert [v["sentence"] for v in told["violations"] if v["step"] is not None] == [
        str(violation) for violation in emulated.verdict.violations()
    ]
