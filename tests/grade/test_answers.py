"""Answers, the variants that they are about, and the self-test of a lab."""

import tomllib
from pathlib import Path

import pytest

from testbed.errors import UserError
from testbed.grade import Lab, self_test
from testbed.grade.variants import write_variant

LAB = """
title = "Answers"
submission = "answers.toml"
[[tier]]
name = "numbers"
kind = "answers"
points = 9
questions = { seed = 0, half = 0.01, guess = "any" }
[[tier]]
name = "words"
kind = "answers"
points = 3
questions = { who = "word", all = "set" }
[variant]
files = ["a.toml"]
[variant.choices]
seed = [1, 2, 3, 4, 5, 6, 7, 8]
"fault.1.rate" = [0.1, 0.2]
[wrong]
"no-guess.toml" = { lost = ["numbers"], score = 9 }
"right.toml" = { lost = ["words"] }
"""
EXPECTED = """
import tomllib
def expected(lab):
    seed = tomllib.loads((lab / "a.toml").read_text())["seed"]
    assert not (lab / "teacher").exists()
    return {"seed": seed, "half": seed / 2, "who": "Process 2", "all": ["a", "b"]}
"""
RIGHT = 'seed = 5\nhalf = 2.51\nguess = 1\nwho = " process  2"\nall = ["b", "a"]\n'


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab of answers, with its own solutions."""
    directory = tmp_path / "answers"
    (directory / "teacher" / "wrong").mkdir(parents=True)
    (directory / "lab.toml").write_text(LAB)
    (directory / "a.toml").write_text("seed = 5\n[[fault]]\nrate = 0.5\n")
    (directory / "teacher" / "answers.py").write_text(EXPECTED)
    (directory / "teacher" / "reference.toml").write_text(RIGHT)
    wrong = directory / "teacher" / "wrong"
    (wrong / "no-guess.toml").write_text(RIGHT.replace("guess = 1", 'guess = ""'))
    (wrong / "right.toml").write_text(RIGHT)
    return Lab.read(directory)


def test_a_self_test_says_what_differs(lab: Lab) -> None:
    """The one that should lose words has all of them."""
    assert self_test(lab) == ["answers, right.toml should lose words and loses nothing"]
    assert self_test(lab.directory, only=["reference.toml", "no-guess.toml"]) == []


def test_variants_differ_by_student_and_are_always_the_same(lab: Lab, tmp_path: Path) -> None:
    """Drawn values are put where the keys say; what is the teacher's is not in them."""
    found = {}
    for student in ("alice", "bob", "carol"):
        write_variant(lab, "secret", student, tmp_path / student)
        found[student] = tomllib.loads((tmp_path / student / "a.toml").read_text())
        assert not (tmp_path / student / "teacher").exists()
    assert len({(f["seed"], f["fault"][0]["rate"]) for f in found.values()}) > 1
    write_variant(lab, "secret", "alice", tmp_path / "again")
    assert tomllib.loads((tmp_path / "again" / "a.toml").read_text()) == found["alice"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('kind = "answers"', 'kind = "answer"'), "tier.0.kind: input should be 'loads'"),
        (("points = 9", "score = 9"), "tier.0.points: field required"),
        (('lost = ["words"]', 'lost = ["words?"]'), "there is no tier 'words?'"),
        (("questions = { seed", "question = { seed"), "question"),
    ],
)
def test_mistakes_in_a_lab_are_told(lab: Lab, change: tuple[str, str], sentence: str) -> None:
    """In a sentence that names the file."""
    (lab.directory / "lab.toml").write_text(LAB.replace(*change, 1))
    with pytest.raises(UserError, match=r"lab\.toml: ") as raised:
        Lab.read(lab.directory)
    assert sentence in str(raised.value)
