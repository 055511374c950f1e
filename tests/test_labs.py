"""The labs are complete, what they tell students to type exists, and solutions get what they should.

``testbed grade --self-test`` grades every wrong solution of every lab. Here is what takes seconds.
"""

import argparse
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from testbed.cli import COMMANDS
from testbed.plugins import find_protocol
from testbed.sweep.points import load_sweep

ROOT = Path(__file__).parent.parent
LABS = [file.parent for file in sorted(ROOT.glob("scripts/labs/*/lab.toml"))]
OTHERS = ("answers.py", "figure.py")  # what is no protocol
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)

each_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)


def described(lab: Path) -> dict[str, Any]:
    return tomllib.loads((lab / "lab.toml").read_text())


def solutions(lab: Path) -> Iterator[Path]:
    suffix = Path(described(lab)["submission"]).suffix
    yield lab / "teacher" / f"reference{suffix}"
    yield from sorted((lab / "teacher" / "wrong").glob(f"*{suffix}"))


@each_lab
def test_a_lab_is_complete(lab: Path) -> None:
    about = described(lab)
    tiers = [tier["name"] for tier in about["tier"]]
    assert sum(tier["points"] for tier in about["tier"]) == 100
    assert len(about["wrong"]) >= 4
    assert {file.name for file in solutions(lab)} - set(about["wrong"]) == {
        f"reference{Path(about['submission']).suffix}"
    }
    for wrong in about["wrong"].values():
        assert wrong["lost"]
        assert wrong["lost"] == [name for name in tiers if name in wrong["lost"]]
    for file in (f"start/{about['submission']}", "README.md", "teacher/notes.md"):
        assert (lab / file).is_file(), file
    notes = (lab / "teacher" / "notes.md").read_text()
    assert not [name for name in about["wrong"] if f"`{Path(name).stem}`" not in notes]


@each_lab
def test_questions_are_those_of_the_file_to_fill_in(lab: Path) -> None:
    about = described(lab)
    asked = {key for tier in about["tier"] for key in tier.get("questions", ())}
    file = about.get("also", about["submission"])
    if asked or file.endswith(".toml"):
        given = tomllib.loads((lab / "start" / file).read_text())
        assert asked == set(given)
        assert set(given.values()) <= {""}
        assert asked == set(tomllib.loads((lab / "teacher" / "reference.toml").read_text()))


@each_lab
def test_commands_of_a_lab_are_there(lab: Path) -> None:
    text = (lab / "README.md").read_text()
    typed = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    commands = [shlex.split(line) for line in typed if line.startswith("testbed ")]
    assert commands
    for _, name, *words in commands:
        parser = argparse.ArgumentParser()
        assert name in COMMANDS
        import_module(f"testbed.commands.{name}").add_parser(parser.add_subparsers())
        options = parser.parse_args([name, *words])
        if file := getattr(options, "file", None):
            assert (lab / file).is_file() or (ROOT / file).is_file(), file


@each_lab
def test_experiments_of_a_lab_can_be_read(lab: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(lab, tmp_path / "lab")
    reference = copy / "teacher" / "reference.py"
    if reference.exists():
        reference.rename(copy / "protocol.py")
    for file in (*copy.glob("*.toml"), *copy.glob("teacher/hidden/*.toml")):
        if file.name != "lab.toml":
            assert load_sweep(file).points


@pytest.mark.parametrize(
    "file",
    [file for lab in LABS for file in lab.rglob("*.py") if file.name not in OTHERS],
    ids=lambda file: f"{file.parent.name}-{file.stem}",
)
def test_protocols_of_a_lab_stand_alone(file: Path) -> None:
    protocol = find_protocol(str(file))
    assert [base.__name__ for base in protocol.__mro__[1:]] == ["Protocol", "ABC", "object"]
