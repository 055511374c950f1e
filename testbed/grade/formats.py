"""Grades in the formats of others: Gradescope, Classroom 50, and JUnit's XML, which many tools read.

None has a time in it but for Classroom 50's ``datetime``, which is that of the commit and given from
outside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from testbed import __version__
from testbed.grade.lab import Lab
from testbed.grade.result import Grade, Result

CLASSROOM50 = "classroom50/result/v1"


def gradescope(lab: Lab, grade: Grade) -> str:
    """``results.json``: https://gradescope-autograders.readthedocs.io/en/latest/specs/."""
    content = {
        "score": grade.score,
        "output": "" if grade.complete else "This was not graded to its end.",
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "lab": lab.name,
            "submission_sha256": grade.sha256,
            "lab_sha256": lab.sha256,
            "testbed": __version__,
        },
        "tests": [
            {
                "name": result.tier,
                "number": str(number),
                "score": result.score,
                "max_score": result.points,
                "status": "passed" if result.passed else "failed",
                "output": told(result),
                "output_format": "text",
                "visibility": "visible",
            }
            for number, result in enumerate(grade.results, 1)
        ],
    }
    return _json(content)


def classroom50(lab: Lab, grade: Grade, environment: Mapping[str, str]) -> str:
    """``result.json`` of an autograder in a student's repository."""
    known = {
        "classroom": environment.get("CLASSROOM", ""),
        "assignment": environment.get("ASSIGNMENT", lab.name),
        "submission": environment.get("SUBMISSION_TAG", grade.student),
        "commit": environment.get("COMMIT_URL", ""),
        "release": environment.get("RELEASE_URL", ""),
        "review": environment.get("REVIEW_URL", ""),
        "datetime": environment.get("DATETIME", ""),
    }
    content = {
        "schema": CLASSROOM50,
        **known,
        "score": grade.score,
        "max-score": lab.points,
        "tests": [
            {
                "test-name": result.tier,
                "passed": result.passed,
                "score": result.score,
                "max-score": result.points,
                "output": told(result),
            }
            for result in grade.results
        ],
    }
    return _json(content)


def junit(lab: Lab, grades: Sequence[Grade]) -> str:
    """A test suite for each student, a test case for each tier."""
    top = ElementTree.Element("testsuites", name=lab.title)
    for grade in grades:
        lost = sum(not result.passed for result in grade.results)
        missing = len(lab.tiers) - len(grade.results)
        suite = ElementTree.SubElement(
            top,
            "testsuite",
            name=_xml(grade.student),
            tests=str(len(lab.tiers)),
            failures=str(lost),
            skipped=str(missing),
        )
        for tier, result in zip(lab.tiers, [*grade.results, *[None] * missing], strict=True):
            case = ElementTree.SubElement(
                suite, "testcase", classname=_xml(f"{lab.name}.{grade.student}"), name=tier.name
            )
            if result is None:
                ElementTree.SubElement(case, "skipped", message="not graded to its end")
            elif not result.passed:
                said = f"{result.score} of {result.points} points: {result.sentence}"
                failure = ElementTree.SubElement(case, "failure", message=_xml(said))
                failure.text = _xml(told(result))
    ElementTree.indent(top)
    text = ElementTree.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def told(result: Result) -> str:
    """All that a student is told of a tier, as text."""
    parts = [result.sentence, result.diagram, result.file]
    if result.repeat:
        parts.append(f"To see it yourself: {result.repeat}")
    return "\n\n".join(part for part in parts if part)


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _xml(text: str) -> str:
    """Text without the characters that XML does not have."""
    return "".join(c for c in text if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff"))
