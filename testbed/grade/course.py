"""A whole class: every submission in a grader of its own, several at once, kept tier by tier.

A grader is a fork that may use so much memory and no more; if one dies, the others go on. What it has
found is written after each tier, so that an interrupted class is resumed where it was."""

from __future__ import annotations

import ctypes
import hashlib
import json
import multiprocessing
import os
import resource
import signal
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import testbed
from testbed.grade.cells import Cells
from testbed.grade.grader import grade
from testbed.grade.lab import Lab
from testbed.grade.result import Grade, Result
from testbed.grade.submission import Submission
from testbed.progress import Progress
from testbed.runs.parts import whole

GRADES = "grades"  # of the output directory; with what only teachers may see
GRADER_FAILED = "the grader failed in this tier; your teacher can see why"
FAILED, STOPPED = 1, 2
PATIENCE_S = 10.0  # with a grader that is told to end
PR_SET_PDEATHSIG = 1
MEMORY_MB = 3072  # of one grader, by address space
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Course:
    """How a class is graded: by which secret, into which directory."""

    lab: Lab
    secret: str
    output: Path

    def key(self, submission: Submission) -> str:
        """A hash of all that a grade follows from."""
        parts = (submission.sha256, self.lab.sha256, self.secret, code_of_testbed())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def file(self, student: str) -> Path:
        """Where a grade is kept; names of students may be anything."""
        name = "".join(c if c.isalnum() or c in "._-" else "_" for c in student)
        return self.output / GRADES / f"{name.lstrip('.') or '_'}.json"

    def keep(self, submission: Submission, results: Sequence[Result]) -> None:
        """Write what is known of a submission so far."""
        content = {
            "student": submission.student,
            "lab": self.lab.name,
            "key": self.key(submission),
            "sha256": submission.sha256,
            "results": [result.to_json() for result in results],
        }
        file = self.file(submission.student)
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file) as part:
            part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def kept(self, submission: Submission) -> tuple[Result, ...]:
        """What was found before, if nothing has changed since."""
        try:
            content = json.loads(self.file(submission.student).read_text("utf-8"))
            if content["key"] != self.key(submission):
                return ()
            return tuple(Result.of(result) for result in content["results"])
        except (OSError, ValueError, KeyError, TypeError):
            return ()

    def grade_of(self, submission: Submission) -> Grade:
        """The grade as far as it is known."""
        results = self.kept(submission)
        complete = len(results) == len(self.lab.tiers)
        return Grade(submission.student, submission.sha256, results, complete)


@cache
def code_of_testbed() -> str:
    """A hash of the testbed's own code: another version may judge otherwise.

    It is that of the beginning: a class that is graded while somebody edits the code is graded by what
    was loaded.
    """
    digest, top = hashlib.sha256(), Path(testbed.__file__).parent
    for directory, below, files in os.walk(top, followlinks=True):
        below.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                digest.update(name.encode() + Path(directory, name).read_bytes())
    return digest.hexdigest()


def grade_class(
    course: Course,
    submissions: Sequence[Submission],
    jobs: int,
    progress: Progress,
    resume: bool = False,
) -> list[Grade]:
    """Grade all submissions; grades are in the order of the students, whoever came first."""
    code_of_testbed()  # once, for all graders
    if not resume:
        for submission in submissions:
            course.file(submission.student).unlink(missing_ok=True)
    todo = [s for s in submissions if not course.grade_of(s).complete]
    before = len(submissions) - len(todo)
    progress("submissions", before, len(submissions))
    with TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as scratch:
        graded = _graded(course, todo, min(jobs, len(todo)), scratch)
        with closing(graded):
            for done, _ in enumerate(graded, before + 1):
                progress("submissions", done, len(submissions))
    return [course.grade_of(submission) for submission in submissions]


def troubles(grades: Sequence[Grade]) -> list[str]:
    """Where graders failed, for the teacher."""
    return [
        f"{grade.student}, {result.tier}: the grader failed: {result.aside}"
        for grade in grades
        for result in grade.results
        if result.sentence == GRADER_FAILED
    ]


def _graded(
    course: Course, todo: Sequence[Submission], jobs: int, scratch: str
) -> Generator[Submission]:
    """The submissions as they are done, ``jobs`` of them at a time."""
    waiting = iter(todo)
    with ExitStack() as stack:
        idle = [stack.enter_context(_Slot(course, scratch)) for _ in range(jobs)]
        busy: dict[int, _Slot] = {}
        while True:
            while idle and (submission := next(waiting, None)):
                slot = idle.pop()
                busy[slot.start(submission)] = slot
            if not busy:
                return
            for sentinel in wait(list(busy)):
                slot = busy.pop(sentinel)  # type: ignore[arg-type]
                submission = slot.finish()
                if course.grade_of(submission).complete:
                    yield submission
                    idle.append(slot)
                else:  # its grader died, and there are more tiers
                    busy[slot.start(submission)] = slot


class _Slot:
    """A zygote that stays warm, and the grader that uses it at the moment."""

    def __init__(self, course: Course, scratch: str) -> None:
        self.course, self.scratch = course, scratch
        self._stack = ExitStack()
        self._grader: ForkProcess | None = None
        self._submission: Submission | None = None

    def __enter__(self) -> _Slot:
        self._cells = self._stack.enter_context(Cells())
        return self

    def __exit__(self, *_: object) -> None:
        if self._grader is not None:
            self._grader.terminate()
            self._grader.join(PATIENCE_S)
            self._grader.kill()
            self._grader.join()
        self._stack.close()

    def start(self, submission: Submission) -> int:
        """Begin with a submission; what tells that it is done."""
        self._submission = submission
        told = (self.course, submission, self._cells, self.scratch, os.getpid())
        self._grader = _FORK.Process(target=_grade, args=told)
        self._grader.start()
        return int(self._grader.sentinel)

    def finish(self) -> Submission:
        """Put the grader away; if it died, its tier is lost, and a new zygote is begun with."""
        assert self._grader is not None
        assert self._submission is not None
        self._grader.join()
        status, submission = self._grader.exitcode, self._submission
        self._grader = self._submission = None
        if status:
            self._stack.close()
            self.__enter__()
            if status != FAILED:
                _lose(self.course, submission, f"it was killed (status {status}), maybe for memory")
        return submission


def _grade(course: Course, submission: Submission, cells: Cells, scratch: str, parent: int) -> None:
    """What a grader does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it,
    signal.signal(signal.SIGTERM, _stop)  # in this way, also by ending itself
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(FAILED)
    tempfile.tempdir = scratch
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20, hard))
    results = list(course.kept(submission))

    def tell(result: Result) -> None:
        results.append(result)
        course.keep(submission, results)

    try:
        grade(course.lab, submission, cells, course.secret, known=tuple(results), tell=tell)
    except Exception as error:  # a bug, or too much for its memory: this submission's alone
        _lose(course, submission, f"{type(error).__name__}: {error}")
        os._exit(FAILED)


def _stop(*_: object) -> NoReturn:
    """Put everything away and end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(STOPPED)


def _lose(course: Course, submission: Submission, why: str) -> None:
    """The tier at which a grader failed gets no points."""
    results = list(course.kept(submission))
    tier = course.lab.tiers[len(results)]
    results.append(Result(tier.name, tier.kind, tier.points, 0, GRADER_FAILED, aside=why))
    course.keep(submission, results)
