"""A submission: a file, a directory or a zip file of a student, of which only the text is read here."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from testbed.errors import UserError
from testbed.grade.lab import Lab

LONGEST = 1 << 20  # bytes of one file


@dataclass(frozen=True)
class Submission:
    """Whose it is, and the text of the files that the lab asks for; None: not there or not text."""

    student: str
    texts: dict[str, str | None]
    problem: str = ""  # why there is no text, in one sentence

    @classmethod
    def read(cls, path: Path, lab: Lab) -> Submission:
        """What was handed in. Whatever is wrong with it is the student's, and stops nobody else."""
        wanted = [name for name in (lab.submission, lab.also) if name]
        problem = ""
        texts: dict[str, str | None] = dict.fromkeys(wanted)
        for name in wanted:
            try:
                texts[name] = _text(path, name, name == lab.submission)
            except (OSError, UnicodeDecodeError, ValueError, zipfile.BadZipFile, RuntimeError) as e:
                if name == lab.submission:
                    problem = f"{name} cannot be read: {e}"
        if texts[lab.submission] is None and not problem:
            problem = f"there is no {lab.submission} in it"
        return cls(path.stem if path.is_file() else path.name, texts, problem)

    @property
    def sha256(self) -> str:
        """A hash of what is graded."""
        digest = hashlib.sha256(self.student.encode(errors="replace"))
        for name, text in self.texts.items():
            digest.update(f"\0{name}\0{text}".encode(errors="replace"))
        return digest.hexdigest()


def read_all(paths: Iterable[Path], lab: Lab) -> list[Submission]:
    """All submissions in the order of their students; each student has one."""
    found: dict[str, Submission] = {}
    for path in paths:
        if not path.exists():
            raise UserError(f"{path}: there is no such submission")
        submission = Submission.read(path, lab)
        if submission.student in found:
            raise UserError(f"two submissions are called {submission.student!r}; rename one")
        found[submission.student] = submission
    return [found[student] for student in sorted(found)]


def student_of(metadata: Path) -> str:
    """Who handed in, by Gradescope's ``submission_metadata.json``; of a group, all its members."""
    try:
        users = json.loads(metadata.read_text("utf-8"))["users"]
        return " ".join(sorted(str(user.get("email") or user["id"]) for user in users))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{metadata}: not the metadata of a submission: {error!r}") from None


def _text(path: Path, name: str, alone: bool) -> str | None:
    if path.is_dir():
        return _limited(path / name)
    if zipfile.is_zipfile(path):
        return _zipped(path, name)
    return _limited(path) if alone else None


def _limited(file: Path) -> str | None:
    if file.is_symlink() or not file.is_file():  # a link could lead anywhere
        return None
    if file.stat().st_size > LONGEST:
        raise ValueError(f"it has more than {LONGEST:,} bytes")
    return file.read_text(encoding="utf-8")


def _zipped(path: Path, name: str) -> str | None:
    """The file of that name that is nearest to the top of a zip file, in memory."""
    with zipfile.ZipFile(path) as archive:
        found = [entry for entry in archive.namelist() if PurePosixPath(entry).name == name]
        if not found:
            return None
        with archive.open(min(found, key=lambda entry: (entry.count("/"), entry))) as file:
            data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise ValueError(f"it has more than {LONGEST:,} bytes")
    return data.decode()
