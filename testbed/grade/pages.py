"""One student's page, and the files that go with it."""

from __future__ import annotations

from html import escape

from testbed.grade.lab import Lab
from testbed.grade.result import Grade, Result
from testbed.grade.tables import page, tone


def student_page(lab: Lab, grade: Grade) -> str:
    """What a student gets to see: points, the first thing that is wrong, and how to see it again."""
    parts = [
        f"<h1>{escape(lab.title)}: {escape(grade.student)}</h1>",
        f'<p class="{tone(grade.score, lab.points)}">'
        f"<strong>{grade.score} of {lab.points} points</strong></p>",
        *(_section(number, result) for number, result in enumerate(grade.results, 1)),
    ]
    if not grade.complete:
        parts.append("<p>This was not graded to its end.</p>")
    return page(f"{lab.title}: {grade.student}", "\n".join(parts))


def violation_files(grade: Grade) -> dict[str, str]:
    """The smallest experiments that go wrong, by file name."""
    return {violation_name(n): r.file for n, r in enumerate(grade.results, 1) if r.file}


def violation_name(number: int) -> str:
    """What the experiment of a tier is called."""
    return f"violation-{number}.toml"


def _section(number: int, result: Result) -> str:
    parts = [
        f'<section>\n<h2 class="{tone(result.score, result.points)}">{escape(result.tier)} '
        f"<small>{result.score} of {result.points}</small></h2>",
        f"<p>{escape(result.sentence)}</p>",
    ]
    if result.diagram:
        parts.append(f"<pre>{escape(result.diagram)}</pre>")
    if result.file:
        parts.append(
            f"<p>The smallest experiment found that goes wrong, {violation_name(number)}; beside your "
            f"file, <code>testbed run {violation_name(number)} --no-digest</code> runs it:</p>\n"
            f"<pre>{escape(result.file)}</pre>"
        )
    if result.repeat:
        parts.append(f"<p>To see it yourself: <code>{escape(result.repeat)}</code></p>")
    return "\n".join([*parts, "</section>"])
