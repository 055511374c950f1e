"""The table of a class, as CSV and as a page. No time, no place and no version is in it: two gradings
are equal to the byte."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from html import escape

from testbed.grade.lab import Lab
from testbed.grade.result import Grade

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
body { color: #1d2733; } table { border-collapse: collapse; }
th, td { padding: .25rem .75rem; text-align: left; vertical-align: top; }
th { border-bottom: 2px solid #1d2733; } td { border-bottom: 1px solid #d5dce3; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.full { color: #14663a; } .part { color: #8a5a00; } .none { color: #a3182b; }
pre { background: #f4f6f8; padding: 1rem; overflow-x: auto; line-height: 1.25; font-size: 13px; }
section { margin: 2rem 0; } h2 small { font-weight: normal; }
""".strip()


def to_csv(lab: Lab, grades: Sequence[Grade]) -> str:
    """A row for each student."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["student", "score", "of", *(tier.name for tier in lab.tiers), "remark"])
    for grade in grades:
        scores: list[object] = [result.score for result in grade.results]
        scores += [""] * (len(lab.tiers) - len(scores))
        writer.writerow(
            [_cell(grade.student), grade.score, lab.points, *scores, _cell(remark(grade))]
        )
    return out.getvalue()


def to_html(lab: Lab, grades: Sequence[Grade], pages: Iterable[str]) -> str:
    """The same as a page, with a link to each student's own."""
    heads = "".join(
        f'<th class="n">{escape(tier.name)}<br><small>{tier.points}</small></th>'
        for tier in lab.tiers
    )
    rows = []
    for grade, link in zip(grades, pages, strict=True):
        cells = "".join(
            f'<td class="n {tone(r.score, r.points)}">{r.score}</td>' for r in grade.results
        )
        cells += "<td></td>" * (len(lab.tiers) - len(grade.results))
        rows.append(
            f'<tr><td><a href="{escape(link)}">{escape(grade.student)}</a></td>'
            f'<td class="n {tone(grade.score, lab.points)}">{grade.score}</td>{cells}'
            f"<td>{escape(remark(grade))}</td></tr>"
        )
    table = (
        f'<table><thead><tr><th>student</th><th class="n">score<br><small>{lab.points}</small></th>'
        f"{heads}<th>remark</th></tr></thead><tbody>\n{chr(10).join(rows)}\n</tbody></table>"
    )
    return page(lab.title, f"<h1>{escape(lab.title)}</h1>\n<p>{_summary(lab, grades)}</p>\n{table}")


def remark(grade: Grade) -> str:
    """What is said of a grade in one line."""
    return grade.sentence if grade.complete else "not graded to its end"


def page(title: str, body: str) -> str:
    """A page of HTML without scripts, for what students wrote is in it."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def tone(score: int, of: int) -> str:
    """The class of a number: all points, some, or none."""
    return "full" if score == of else "part" if score else "none"


def _summary(lab: Lab, grades: Sequence[Grade]) -> str:
    scores = sorted(grade.score for grade in grades if grade.complete)
    if not scores:
        return "nobody is graded yet"
    full = sum(score == lab.points for score in scores)
    middle = scores[len(scores) // 2]
    return (
        f"{len(scores)} submissions, {full} with all {lab.points} points; the median is {middle}."
    )


def _cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text
