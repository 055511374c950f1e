"""A class: tables equal to the byte, grades that are kept, and the formats of others."""

import csv
import json
import zipfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from testbed.cli import main
from testbed.grade import Lab
from testbed.grade.course import Course, code_of_testbed, grade_class
from testbed.grade.output import write_all
from testbed.grade.result import Result, half_and_half
from testbed.grade.seeds import hidden_seeds
from testbed.grade.submission import Submission, read_all
from testbed.progress import silent
from tests.grade.conftest import causal

CHEAP = """
title = "Cheap"
submission = "protocol.py"
[[tier]]
name = "loads"
kind = "loads"
points = 4
[[tier]]
name = "two"
kind = "explore"
points = 6
nodes = 2
messages = 2
fifo = false
"""


@pytest.fixture
def cheap(tmp_path: Path) -> Lab:
    """A lab that takes no time."""
    directory = tmp_path / "cheap"
    directory.mkdir()
    (directory / "lab.toml").write_text(CHEAP)
    return Lab.read(directory)


@pytest.fixture
def handed_in(tmp_path: Path) -> list[Path]:
    """A file, a directory, a zip file, one that holds nothing, and one with a dangerous name."""
    top = tmp_path / "handed-in"
    (top / "bob").mkdir(parents=True)
    (top / "alice.py").write_text(causal())
    (top / "bob" / "protocol.py").write_text(causal(ready="True"))
    with zipfile.ZipFile(top / "carol.zip", "w") as archive:
        archive.writestr("lab/protocol.py", causal(receive='raise ValueError("<b>")'))
    (top / "dan").mkdir()
    (top / "=cmd().py").write_text(causal())
    return sorted(top.iterdir())


def test_a_class_is_graded_by_the_code_of_the_beginning(
    cheap: Lab, handed_in: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though somebody edits it meanwhile."""
    code = tmp_path / "code.py"
    code.write_text("old")
    monkeypatch.setattr("testbed.__file__", str(code))
    monkeypatch.setattr("testbed.grade.course.code_of_testbed", cache(code_of_testbed.__wrapped__))
    submissions = read_all(handed_in, cheap)

    def edit(_: str, done: int, __: int) -> None:
        code.write_text(f"new {done}")

    grades = grade_class(Course(cheap, "secret", tmp_path / "out"), submissions, 1, edit)
    assert [grade.student for grade in grades if not grade.complete] == []


def test_tables_are_equal_to_the_byte(cheap: Lab, handed_in: list[Path], tmp_path: Path) -> None:
    """By two graders or one; and every student has a page and a row."""
    written = []
    for jobs in (1, 2):
        course = Course(cheap, "secret", tmp_path / f"out-{jobs}")
        submissions = read_all(handed_in, cheap)
        write_all(course, grade_class(course, submissions, jobs, silent))
        files = sorted(file for file in course.output.rglob("*") if file.is_file())
        written.append({f.relative_to(course.output): f.read_bytes() for f in files})
    assert written[0] == written[1]
    rows = list(csv.DictReader((tmp_path / "out-1" / "class.csv").open()))
    assert [(row["student"], row["score"]) for row in rows] == [
        ("'=cmd()", "10"),
        ("alice", "10"),
        ("bob", "4"),
        ("carol", "4"),
        ("dan", "0"),
    ]
    assert rows[4]["remark"] == "there is no protocol.py in it"
    page = written[0][Path("students/carol/index.html")].decode()
    assert "ValueError: &lt;b&gt; (protocol.py, line 43" in page
    suites = ElementTree.fromstring(written[0][Path("junit.xml")])
    assert [suite.get("failures") for suite in suites] == ["0", "0", "1", "1", "2"]


def test_what_is_kept_is_not_graded_again(cheap: Lab, tmp_path: Path) -> None:
    """Half a grade is gone on with, unless what was handed in has changed."""
    course = Course(cheap, "", tmp_path / "out")
    alice = Submission("alice", {"protocol.py": causal()})
    kept = Result("loads", "loads", 4, 3, "kept")
    course.keep(alice, [kept])
    assert not course.grade_of(alice).complete
    (grade,) = grade_class(course, [alice], 1, silent, resume=True)
    assert (grade.results[0], grade.score) == (kept, 9)
    changed = Submission("alice", {"protocol.py": causal() + "# changed\n"})
    (grade,) = grade_class(course, [changed], 1, silent, resume=True)
    assert grade.score == 10


def test_the_command_writes_what_gradescope_takes(
    cheap: Lab, handed_in: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One submission; the student is who the metadata says."""
    metadata, results = tmp_path / "metadata.json", tmp_path / "results.json"
    metadata.write_text('{"users": [{"id": 1, "email": "a@b.edu"}]}')
    bob = next(path for path in handed_in if path.name == "bob")
    classroom = tmp_path / "result.json"
    options = ["--gradescope", str(results), "--metadata", str(metadata), "--jobs", "1"]
    options += ["--classroom50", str(classroom), "--output", str(tmp_path / "out")]
    assert main(["grade", str(cheap.directory), str(bob), *options]) == 0
    found = json.loads(results.read_text())
    assert found["score"] == 4
    assert [test["score"] for test in found["tests"]] == [4, 0]
    assert [test["status"] for test in found["tests"]] == ["passed", "failed"]
    assert "To see it yourself: testbed explore" in found["tests"][1]["output"]
    said = json.loads(classroom.read_text())
    assert (said["schema"], said["score"], said["max-score"]) == ("classroom50/result/v1", 4, 10)
    assert "a@b.edu" in capsys.readouterr().out


def test_a_bundle_is_complete_and_always_the_same(cheap: Lab, tmp_path: Path) -> None:
    """Scripts at its root that can be executed, the testbed, the lab and the secret."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    for name in ("one.zip", "two.zip"):
        file = str(tmp_path / name)
        options = ["--bundle", file, "--secret", str(secret)]
        assert main(["grade", str(cheap.directory), *options]) == 0
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        for name in ("setup.sh", "run_autograder"):
            assert archive.getinfo(name).external_attr >> 16 & 0o111
        assert {"testbed/protocols/base.py", "cheap/lab.toml"} <= set(archive.namelist())
        assert b"pyspark" not in archive.read("requirements.txt")
        assert archive.read("secret") == b"s3cret\n"


def test_points() -> None:
    """Half in proportion, the other half if all is right; seeds differ by student and secret."""
    assert [half_and_half(20, right, 40) for right in (0, 20, 39, 40)] == [0, 5, 9, 20]
    seeds = hidden_seeds("s", "alice", "lab", "tier", 5)
    assert seeds == hidden_seeds("s", "alice", "lab", "tier", 5)
    assert not set(seeds) & set(hidden_seeds("s", "bob", "lab", "tier", 5))
    assert not set(seeds) & set(hidden_seeds("t", "alice", "lab", "tier", 5))
