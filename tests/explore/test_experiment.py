"""Counter-examples as experiment files: the simulator goes wrong in the same way."""

import tomllib
from pathlib import Path

import pytest

from testbed.live.session import Session
from tests.command_line import CommandLine

FOUND = (
    "broken-impatient",
    "broken-no-fifo",
    "broken-higher",
    "broken-newest",
    "broken-own-groups",
)


@pytest.mark.parametrize("protocol", FOUND)
def test_a_counter_example_goes_wrong_in_the_simulator_too(
    protocol: str, tmp_path: Path, testbed: CommandLine
) -> None:
    file = tmp_path / "example.toml"
    said = testbed("explore", "--protocol", protocol, "--save", file, status=1)
    assert f"testbed live {file}" in said.out
    told = Session(file).run(0, [])
    assert told["verdict"] == "invalid"
    said = testbed("explore", "--protocol", protocol, "--json", status=1)
    wrong = said.json()["counter_example"]["wrong"]
    assert any(
        f"process {v['node']} " in wrong and v["effect"] in wrong for v in told["violations"]
    )


def test_a_file_is_never_overwritten(tmp_path: Path, testbed: CommandLine) -> None:
    file = tmp_path / "example.toml"
    file.write_text("mine")
    said = testbed("explore", "--protocol", "broken-impatient", "--save", file, status=2)
    assert "exists already" in said.err
    assert file.read_text() == "mine"


def test_each_message_has_its_slot_of_time(tmp_path: Path, testbed: CommandLine) -> None:
    file = tmp_path / "example.toml"
    testbed("explore", "--protocol", "broken-impatient", "--save", file, status=1)
    saved = tomllib.loads(file.read_text())
    assert saved["workload"]["send"][0] == {"node": 0, "at_ms": 10.0}
    assert all(fault["kind"] == "delay" for fault in saved["fault"])
