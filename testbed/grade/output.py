"""The output directory: the class's table, a directory for each student, and the formats of others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from testbed.grade.course import Course
from testbed.grade.formats import classroom50, gradescope, junit
from testbed.grade.pages import student_page, violation_files
from testbed.grade.result import Grade
from testbed.grade.tables import to_csv, to_html
from testbed.runs.parts import whole

STUDENTS = "students"  # what may be handed back


def write_all(course: Course, grades: Sequence[Grade]) -> None:
    """Write everything, whatever is graded so far."""
    lab, output = course.lab, course.output
    names = [course.file(grade.student).stem for grade in grades]
    for name, grade in zip(names, grades, strict=True):
        files = {
            "index.html": student_page(lab, grade),
            "gradescope.json": gradescope(lab, grade),
            "classroom50.json": classroom50(lab, grade, os.environ),
            **violation_files(grade),
        }
        for file, text in files.items():
            _write(output / STUDENTS / name / file, text)
    links = [f"{STUDENTS}/{quote(name)}/index.html" for name in names]
    _write(output / "class.csv", to_csv(lab, grades))
    _write(output / "junit.xml", junit(lab, grades))
    _write(output / "class.html", to_html(lab, grades, links))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole(file) as part:
        part.write_text(text, encoding="utf-8")
