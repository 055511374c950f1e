"""``testbed grade``: grade what students handed in for a lab."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from testbed.commands.terminal import complain, console, new_table, progress_bar
from testbed.errors import UserError, read_text
from testbed.grade.bundle import write_bundle
from testbed.grade.course import Course, grade_class, troubles
from testbed.grade.formats import classroom50, gradescope
from testbed.grade.lab import Lab
from testbed.grade.output import write_all
from testbed.grade.result import Grade
from testbed.grade.selftest import self_test
from testbed.grade.submission import read_all, student_of
from testbed.grade.tables import remark
from testbed.grade.variants import write_variant


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "grade",
        description="Grade submissions of a lab, tier by tier: whether the protocol can be loaded, "
        "all executions of a small system, public and hidden seeds of the fuzzer, budgets, a run on "
        "emulated hosts, answers. The code of a submission runs in processes that can do nothing but "
        "compute; what it does is judged outside of them. Written are a table of the class, a page "
        "for each student, and the files that Gradescope, Classroom 50 and readers of JUnit's format "
        "take. Exit status: 0 all is graded, 1 a self-test found a difference, 2 something could not "
        "be graded.",
    )
    parser.add_argument("lab", type=Path, help="directory of the lab, which has a lab.toml")
    parser.add_argument(
        "submission",
        type=Path,
        nargs="*",
        help="a file, a directory or a zip file; its name is the student's. With --self-test: more "
        "labs; with --variant: names of students",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("grades"), help="where results go (default: grades)"
    )
    parser.add_argument(
        "--secret",
        type=Path,
        metavar="FILE",
        help="the course's secret, from which hidden seeds and variants follow (default: none)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="submissions to grade at the same time (default: one for each core)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on where an earlier grading was interrupted"
    )
    _add_modes(parser)
    parser.set_defaults(command=command)


def _add_modes(parser: argparse.ArgumentParser) -> None:
    """What to do other than to grade."""
    parser.add_argument(
        "--gradescope",
        type=Path,
        metavar="FILE",
        help="also write the result of the one submission here, as Gradescope takes it",
    )
    parser.add_argument(
        "--metadata",
        type=Path,
        metavar="FILE",
        help="Gradescope's submission_metadata.json, which says who the student is",
    )
    parser.add_argument(
        "--classroom50",
        type=Path,
        metavar="FILE",
        help="also write the result of the one submission here, as Classroom 50 takes it",
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--bundle",
        type=Path,
        metavar="ZIP",
        help="write an autograder for Gradescope: the testbed, the lab and the secret",
    )
    modes.add_argument(
        "--self-test",
        action="store_true",
        help="grade the lab's own solutions, right and wrong ones, and say which do not score what "
        "they should",
    )
    modes.add_argument(
        "--variant",
        action="store_true",
        help="write the lab's public files for these students, each with numbers of their own",
    )


def command(options: argparse.Namespace) -> int:
    """Grade, or do what else was asked for."""
    secret = _secret(options.secret)
    if options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: must be at least 1")
    if options.self_test:
        return _self_test([options.lab, *options.submission])
    lab = Lab.read(options.lab)
    if options.bundle:
        write_bundle(lab, secret, options.bundle)
        console().print(f"autograder: {options.bundle}", soft_wrap=True, markup=False)
        return 0
    if not options.submission:
        raise UserError("name at least one submission, as in testbed grade LAB alice.py bob.py")
    if options.variant:
        for student in map(str, options.submission):
            write_variant(lab, secret, student, options.output / student)
            console().print(f"{student}: {options.output / student}", soft_wrap=True, markup=False)
        return 0
    return _grade(Course(lab, secret, options.output), options)


def _grade(course: Course, options: argparse.Namespace) -> int:
    submissions = read_all(options.submission, course.lab)
    if options.metadata:
        submissions = [replace(s, student=student_of(options.metadata)) for s in submissions]
    if (options.gradescope or options.classroom50) and len(submissions) != 1:
        raise UserError("--gradescope and --classroom50 are for one submission at a time")
    if options.secret is None and any(tier.hidden for tier in course.lab.tiers):
        complain("without --secret, hidden seeds can be worked out by anybody")
    try:
        with progress_bar("grade") as progress:
            grades = grade_class(course, submissions, options.jobs, progress, options.resume)
    except KeyboardInterrupt:
        write_all(course, [course.grade_of(submission) for submission in submissions])
        complain(f"what is graded is kept in {options.output}; --resume goes on")
        raise
    write_all(course, grades)
    if options.gradescope:
        options.gradescope.write_text(gradescope(course.lab, grades[0]), "utf-8")
    if options.classroom50:
        content = classroom50(course.lab, grades[0], os.environ)
        options.classroom50.write_text(content, "utf-8")
    _show(course.lab, grades, options.output)
    failed = troubles(grades)
    for sentence in failed:
        complain(sentence)
    return 2 if failed else 0


def _show(lab: Lab, grades: list[Grade], output: Path) -> None:
    out = console(wide=True)
    table = new_table(["student"], ["score"])
    table.add_column("remark")
    room = max(20, out.width - 12 - max(len(grade.student) for grade in grades))
    for grade in grades:
        said = remark(grade)
        short = said if len(said) <= room else f"{said[: room - 1]}…"
        table.add_row(escape(grade.student), f"{grade.score}", escape(short))
    out.print(table)
    out.print(f"of {lab.points} points; table and pages: {output}", soft_wrap=True, markup=False)


def _self_test(labs: list[Path]) -> int:
    out, wrong = console(), False
    for path in labs:
        with progress_bar("self-test") as progress:
            differences = self_test(path, progress=progress)
        for sentence in differences or [f"{path.name}: every solution scores what it should"]:
            out.print(sentence, markup=False, soft_wrap=True)
        wrong |= bool(differences)
    return 1 if wrong else 0


def _secret(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        secret = read_text(file).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--secret {file}: cannot be read: {error}") from None
    if not secret:
        raise UserError(f"--secret {file}: it is empty")
    return secret
