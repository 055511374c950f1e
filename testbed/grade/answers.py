"""Tiers of answers: a flat TOML table, compared with what the student's own experiments give."""

from __future__ import annotations

import importlib.util
import math
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from testbed.errors import UserError
from testbed.grade.lab import TEACHER, Lab, Tier
from testbed.grade.result import Result, share
from testbed.grade.variants import write_variant

FILE = "answers.py"


@cache
def expected_answers(lab: Lab, secret: str, student: str | None) -> dict[str, Any]:
    """What the teacher's code finds by running the student's files."""
    file = lab.directory / TEACHER / FILE
    spec = importlib.util.spec_from_file_location(f"answers_{lab.name.replace('-', '_')}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise UserError(f"{file}: no such file; it has `def expected(lab: Path) -> dict`")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory(prefix="grade-") as directory:
        write_variant(lab, secret, student, Path(directory) / lab.name)
        found: dict[str, Any] = module.expected(Path(directory) / lab.name)
    return found


def read_answers(text: str | None) -> dict[str, Any] | str:
    """The answers, or what is wrong with the file."""
    if text is None:
        return "there is no file of answers"
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return f"the answers cannot be read as TOML: {error}"


def judge(tier: Tier, given: dict[str, Any] | str, expected: dict[str, Any]) -> Result:
    """Points for the questions that were answered rightly; right answers are not told."""
    if isinstance(given, str):
        return Result(tier.name, tier.kind, tier.points, 0, given)
    wrong = [
        key
        for key, how in tier.questions.items()
        if not _is_right(given.get(key), how, expected.get(key))
    ]
    of = len(tier.questions)
    score = share(tier.points, of - len(wrong), of)
    said = f"{of - len(wrong)} of {of} answers are right"
    sentence = f"{said}; not {', '.join(wrong)}" if wrong else said
    aside = "; ".join(f"{key}: {given.get(key)!r}, not {expected.get(key)!r}" for key in wrong)
    return Result(tier.name, tier.kind, tier.points, score, sentence, aside=aside)


def _is_right(given: Any, how: float | str, expected: Any) -> bool:
    if given is None or given in ("", []):
        return False
    match how:
        case "any":
            return True
        case "word":
            return _word(given) == _word(expected)
        case "set":
            both = (given, expected)
            return all(isinstance(v, list | tuple | set) for v in both) and set(
                map(_word, given)
            ) == set(map(_word, expected))
        case str():
            raise UserError(f"a question is a tolerance, 'word', 'set' or 'any', not {how!r}")
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (given, expected))
    return numbers and math.isclose(given, expected, rel_tol=float(how), abs_tol=0.0)


def _word(value: Any) -> str:
    return " ".join(str(value).lower().split())
