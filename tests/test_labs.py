"""The labs are complete, what they tell students to type exists, and solutions get what they should.

``testbed grade --self-test`` grades every wrong solution of every lab, on emulated hosts too. Here is
what takes seconds.
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
from testbed.experiment import load
from testbed.explore import explore
from testbed.grade import self_test
from testbed.grade.lab import Lab
from testbed.grade.variants import write_variant
from testbed.plugins import find_protocol
from testbed.run import run_experiment
from testbed.sweep.points import load_sweep
from tests.command_line import CommandLine

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


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("02-fifo", "delivers-twice"),
        ("03-vector-clocks", "polls"),
        ("04-flooding", "back-to-where-it-came-from"),
        ("06-log", "one-log-for-all-copies"),
        ("07-groups", "this-group-only"),
        ("09-gossip", "tells-once"),
    ],
)
def test_protocols_lose_what_they_should(name: str, wrong: str, tmp_path: Path) -> None:
    """The reference and one mistake, in this process: small worlds and runs on the simulator."""
    lab = ROOT / "scripts" / "labs" / name
    about = described(lab)
    kinds = (
        ("run",) if name == "06-log" else ("explore", "run")
    )  # its small world has 40,000 states
    tiers = [tier for tier in about["tier"] if tier["kind"] in kinds]
    tiers = [tier for tier in tiers if tier.get("engine") != "virtual"]
    for file, lost in (
        ("reference.py", []),
        (f"wrong/{wrong}.py", about["wrong"][f"{wrong}.py"]["lost"]),
    ):
        for tier in tiers:
            right = passes(lab, lab / "teacher" / file, tier, tmp_path)
            assert right == (tier["name"] not in lost), (file, tier["name"])


def passes(lab: Path, file: Path, tier: dict[str, Any], runs: Path) -> bool:
    """Whether a protocol gets all points of a tier."""
    if tier["kind"] == "explore":
        how = {key: tier[key] for key in ("nodes", "messages", "fifo") if key in tier}
        return explore(find_protocol(str(file)), **how).verdict == "valid"
    for experiment in tier.get("experiments", [tier.get("experiment")]):
        (given,) = load(lab / experiment, protocol=[{"name": str(file)}])
        run = run_experiment(given, runs, lambda *_: None)
        messages = run.summary["multicasts"]
        figures = run.summary | {
            "control_bytes_per_message": run.summary["control_bytes"] / messages,
            "copies_per_message": run.summary["copies"] / messages,
        }
        if not run.verdict.ok or any(figures[k] > v for k, v in tier.get("limits", {}).items()):
            return False
    return True


@pytest.mark.parametrize(("name", "wrong"), [("01-order", "one-half"), ("05-network", "one-way")])
def test_answers_score_what_they_should(name: str, wrong: str) -> None:
    """The reference and one mistake, by the grader."""
    assert not self_test(ROOT / "scripts" / "labs" / name, ("reference.toml", f"{wrong}.toml"))


@each_lab
def test_students_get_what_they_begin_with_and_no_answers(lab: Path, tmp_path: Path) -> None:
    write_variant(Lab.read(lab), "secret", "alice", tmp_path)
    assert (tmp_path / "start" / described(lab)["submission"]).is_file()
    assert (tmp_path / "README.md").is_file()
    assert not (tmp_path / "teacher").exists()


def test_the_first_lab_is_as_its_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: CommandLine
) -> None:
    """What is printed when its commands are typed: delays, a violation, and who is to blame."""
    monkeypatch.chdir(shutil.copytree(ROOT / "scripts" / "labs" / "01-order", tmp_path / "order"))
    assert re.search(r"^0 – 2 +47\.167 ", testbed("topology", "order.toml", "--links").out, re.M)
    shown = testbed("run", "order.toml", "--no-digest", status=1).out
    assert re.search(r"causal order +invalid +valid", shown)
    assert re.search(r"of these control information +0 +48", shown)
    assert "node 2 delivered m(1,1) before m(0,1)" in shown


@pytest.mark.parametrize(
    "name", re.findall(r"--protocol (broken-[\w-]+)", (LABS[2] / "README.md").read_text())
)
def test_mistakes_to_be_found_are_found(name: str, testbed: CommandLine) -> None:
    testbed("explore", "--protocol", name, "--messages", 3, status=1)


def test_shared_state_is_told_where_it_leaves_no_trace(testbed: CommandLine) -> None:
    file = LABS[1] / "teacher" / "wrong" / "state-on-the-class.py"
    small = ("--nodes", 2, "--messages", 3, "--no-fifo")
    said = testbed("explore", "--protocol", file, *small, status=2).err
    assert "something is remembered outside of self" in said
