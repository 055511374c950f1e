"""The book as one page that loads nothing: chapters, verdicts, plots, tables, how to make it again."""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from markdown_it import MarkdownIt

from scripts.reproductions.book.blocks import blocks, unnamed
from scripts.reproductions.chapter import Chapter, Erratum, Plot, Table, texts
from scripts.reproductions.claims import VERDICTS, Judged, tally
from testbed.report.tables import write_table

MARKDOWN = MarkdownIt("commonmark").enable("table")
MARKDOWN.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
MARKDOWN.add_render_rule("table_close", lambda *_: "</table></div>")
HERE = Path(__file__).parent
MARKS = dict(zip(VERDICTS, ("good", "bad", "open", "none"), strict=True))
TITLE = "Causal order, reproduced"


@dataclass
class Numbers:
    """Numbers plots and tables within a chapter, as paper has no links."""

    chapter: int
    counts: dict[str, int] = field(default_factory=dict)

    def next(self, kind: str) -> str:
        """The next number of a kind."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return f"{kind} {self.chapter}.{self.counts[kind]}."


def write_book(
    chapters: Sequence[Chapter], made: str, command: str, versions: Mapping[str, str]
) -> str:
    """The page; ``made`` says when and at which scale."""
    sections = {"summary": ("What holds", _summary(chapters))}
    for number, chapter in enumerate(chapters, 2):
        sections[chapter.name] = (chapter.title, _chapter(chapter, Numbers(number)))
    again = f"<p>This book was made by</p><pre>{escape(command)}</pre>{_file('again.md')}"
    again += _versions(versions)
    sections["again"] = ("To make it again", again)
    report = files("testbed.report")
    return Template(report.joinpath("page.html").read_text("utf-8")).substitute(
        title=TITLE,
        heading=TITLE,
        lead=escape(made),
        nav=_contents(sections, chapters),
        sections="\n".join(
            f'<section id="{name}" aria-labelledby="{name}-title">'
            f'<h2 id="{name}-title">{number} {_inline(title)}</h2>\n{content}\n</section>'
            for number, (name, (title, content)) in enumerate(sections.items(), 1)
        ),
        footer="This page loads nothing from anywhere.",
        css=report.joinpath("page.css").read_text("utf-8") + (HERE / "book.css").read_text("utf-8"),
        js="document.documentElement.dataset.ready = 'yes';",
    )


def _file(name: str) -> str:
    """A text of the book itself."""
    return str(MARKDOWN.render((HERE / name).read_text("utf-8")))


def _summary(chapters: Sequence[Chapter]) -> str:
    rows = []
    for chapter in chapters:
        counts = tally(chapter.claims)
        if not chapter.claims:
            continue
        link = f'<a href="#{chapter.name}">{_inline(chapter.title.partition(":")[0])}</a>'
        numbers = [f"{counts[word]}" for word in VERDICTS]
        rows.append(
            [link, str(len(chapter.claims)), *numbers, _bar(counts), f"{chapter.runs:,}"]
        )  # fmt: skip
    heads = ["", "claims", *map(_mark, VERDICTS), "", "runs"]
    return _file("reading.md") + write_table(heads, rows, kinds=" nnnnn n")


def _bar(counts: Mapping[str, int]) -> str:
    parts = "".join(
        f'<i class="{MARKS[word]}" style="flex-grow: {count}"></i>'
        for word, count in counts.items()
        if count
    )
    words = ", ".join(f"{word}: {count}" for word, count in counts.items())
    return f'<span class="tally" role="img" aria-label="{words}">{parts}</span>'


def _mark(verdict: str) -> str:
    return f'<span class="verdict {MARKS[verdict]}">{escape(verdict)}</span>'


def _contents(sections: Mapping[str, tuple[str, str]], chapters: Sequence[Chapter]) -> str:
    errata = {c.name: [(e.name, e.title) for e in c.errata] for c in chapters}
    rows = []
    for number, (name, (title, _)) in enumerate(sections.items(), 1):
        below = "".join(
            f'<li><a href="#{to}">{_inline(its)}</a></li>' for to, its in errata.get(name, ())
        )
        more = f"<ol>{below}</ol>" if below else ""
        rows.append(f'<li>{number} <a href="#{name}">{_inline(title)}</a>{more}</li>')
    return f'<ol class="chapters">{"".join(rows)}</ol>'


def _chapter(chapter: Chapter, numbers: Numbers) -> str:
    scale = chapter.scale[:1].upper() + chapter.scale[1:]
    about = (
        f'<p class="source">{_inline(chapter.paper)}</p>'
        f"<p>{escape(scale)}; seeds {escape(chapter.seeds)}; {chapter.runs:,} runs.</p>"
        f"<pre>{escape(chapter.command)}</pre>"
    )
    parts = [_block(block, chapter, numbers) for block in blocks(chapter)]
    tables, plots = unnamed(chapter)
    if tables or plots:
        parts.append("<h3>All that was measured</h3>")
        parts += [_plot(plot, numbers) for plot in plots]
        parts += [_table(table, numbers) for table in tables]
    return about + "\n".join(parts)


def _block(block: str | Table | Plot, chapter: Chapter, numbers: Numbers) -> str:
    match block:
        case Plot():
            return _plot(block, numbers)
        case Table():
            return _table(block, numbers)
        case "claims":
            return _claims(chapter.claims)
        case "errata":
            return "\n".join(_erratum(its, numbers) for its in chapter.errata)
    return str(MARKDOWN.render(block))


def _table(table: Table, numbers: Numbers) -> str:
    kinds = " " * table.words + "n" * (len(table.heads) - table.words)
    caption = f"{numbers.next('Table')} {table.title}. {table.caption}".strip()
    rows = [[*map(escape, texts(row))] for row in table.rows]
    return write_table([*map(escape, table.heads)], rows, caption, kinds)


def _plot(plot: Plot, numbers: Numbers) -> str:
    label = f"<b>{numbers.next('Figure')}</b> {_inline(plot.caption)}"
    return _figure(plot.svg, plot.caption, label)


def _figure(svg: bytes, alt: str, caption: str) -> str:
    image = base64.b64encode(svg).decode()
    return (
        f'<figure class="wide"><img src="data:image/svg+xml;base64,{image}" alt="{escape(alt)}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _claims(claims: Iterable[Judged]) -> str:
    rows = [
        [
            escape(its.where),
            f"<td>{_mark(its.verdict)}</td>",
            f'<td class="wrap">{_inline(its.says)}<small class="rule">{escape(its.compared)}. '
            f"<i>Rule:</i> {escape(its.rule)}.</small></td>",
            escape(its.measured),
        ]
        for its in claims
    ]
    heads = ("", "holds", "the paper says; what is compared", "measured")
    return f'<div class="claims">{write_table(heads, rows, kinds="  ww")}</div>'


def _erratum(its: Erratum, numbers: Numbers) -> str:
    parts = [f'<h3 id="{its.name}">{escape(its.where)}: {_inline(its.title)}</h3>']
    parts += [MARKDOWN.render(f"**{head}** {text}") for head, text in its.told]
    if its.diagram:
        label = (
            f"<b>{numbers.next('Figure')}</b> {_inline(its.title)}: an execution that goes wrong."
        )
        parts.insert(3, _figure(its.diagram, f"Space-time diagram: {its.title}", label))
    commands = "\n".join(its.commands)
    parts += [f"<pre>{escape(commands)}</pre>", _table(its.outcomes, numbers)]
    return "".join(parts)


def _versions(versions: Mapping[str, str]) -> str:
    rows = [[escape(name), escape(version)] for name, version in versions.items()]
    return write_table(["", "version"], rows)


_inline: Callable[[str], str] = MARKDOWN.renderInline
