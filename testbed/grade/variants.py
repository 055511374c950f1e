"""A student's own variant of a lab: the public files, with numbers drawn from the course's secret and
the name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import tomli_w

from testbed.errors import UserError
from testbed.experiment import read_document
from testbed.grade.lab import TEACHER, Lab
from testbed.grade.seeds import choose


def write_variant(lab: Lab, secret: str, student: str | None, directory: Path) -> None:
    """The lab's public files, changed for a student; as they are if there is none."""
    hidden = shutil.ignore_patterns(TEACHER, "__pycache__")
    shutil.copytree(lab.directory, directory, ignore=hidden, dirs_exist_ok=True)
    if student is None or lab.variant is None:
        return
    for name in lab.variant.files:
        file = directory / name
        document = read_document(file)
        for key, values in lab.variant.choices.items():
            value = choose(secret, student, lab.name, key, values)
            _put(document, key.split("."), value, f"{file}: variant key {key!r}")
        text = f"# For {student}. {lab.title}.\n{tomli_w.dumps(document)}"
        file.write_text(text, encoding="utf-8")


def _put(document: Any, path: list[str], value: Any, where: str) -> None:
    """Put a value where a dotted key says; arrays are counted from 1, as in the results of a sweep."""
    *above, last = path
    for key in above:
        try:
            document = document[int(key) - 1] if isinstance(document, list) else document[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise UserError(f"{where} leads nowhere: there is no {key!r}") from None
    if isinstance(document, list):
        document[int(last) - 1] = value
    else:
        document[last] = value
