"""The docs: chapters as Markdown, with the tables and plots that their texts name and all verdicts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.reproductions.book.blocks import blocks, unnamed
from scripts.reproductions.chapter import Chapter, Erratum, Plot, Table, texts
from scripts.reproductions.claims import NO, VERDICTS, Judged, tally

HERE = Path(__file__).parent


BY_HAND = "What follows about {} is from before results were kept, and was written by hand."
SECTION = "\n## "


def write_docs(chapters: Sequence[Chapter], before: str = "") -> str:
    """The whole file; of what was there before, the sections whose results are not kept stay."""
    _, *sections = before.strip().split(SECTION)
    old = {section.partition("\n")[0]: section.strip() for section in sections}
    new = {chapter.title: section_of(chapter) for chapter in chapters}
    head = [(HERE / name).read_text("utf-8").strip() for name in ("docs.md", "reading.md")]
    head.append(summary(chapters))
    if others := [title.partition(":")[0] for title in old if title not in new]:
        head.append(BY_HAND.format("; ".join(others)))
    return "\n\n".join([*head, *(f"## {section}" for section in (old | new).values())]) + "\n"


def section_of(chapter: Chapter) -> str:
    """A chapter, from its title on."""
    parts = [chapter.title, f"`{chapter.command}`: {chapter.scale}; seeds {chapter.seeds}."]
    parts += [_block(block, chapter) for block in blocks(chapter)]
    if plots := unnamed(chapter)[1]:
        links = (f"[{plot.caption.rstrip('.')}]({_file(chapter, plot.name)})" for plot in plots)
        parts.append(f"More plots: {'; '.join(links)}.")
    return "\n\n".join(filter(None, parts))


def summary(chapters: Sequence[Chapter]) -> str:
    """How many claims of each paper have which verdict."""
    rows = [
        [
            c.title.partition(":")[0],
            *(str(tally(c.claims)[word]) for word in VERDICTS),
            f"{c.runs:,}",
        ]
        for c in chapters
        if c.claims
    ]
    return _table(("claims", *VERDICTS, "runs"), rows, 1)


def _block(block: str | Table | Plot, chapter: Chapter) -> str:
    match block:
        case Plot():
            return _picture(block.caption, _file(chapter, block.name))
        case Table():
            title = f"**{block.title}.**" + (f" {block.caption}" if block.caption else "")
            rows = [texts(row) for row in block.rows]
            return f"{title}\n\n{_table(block.heads, rows, block.words)}"
        case "claims":
            return _claims(chapter.claims)
        case "errata":
            return "\n\n".join(_erratum(its, chapter) for its in chapter.errata)
    return block


def _file(chapter: Chapter, name: str) -> str:
    """Where a plot is kept, as the docs link to it."""
    return f"reproductions/{chapter.name}/{name}.svg"


def _picture(caption: str, file: str) -> str:
    return f"![{caption}]({file})\n\n*{caption}*"


def _claims(claims: Iterable[Judged]) -> str:
    rows = [
        (its.where, its.says, its.measured, f"**{NO}**" if its.verdict == NO else its.verdict)
        for its in claims
    ]
    return _table(("", "the paper", "measured", "holds"), rows, 4)


def _erratum(its: Erratum, chapter: Chapter) -> str:
    commands = "\n".join(its.commands)
    printed, wrong, repair = (f"**{head}** {told}" for head, told in its.told)
    return "\n\n".join(
        (
            f"### {its.where}: {its.title}",
            printed,
            wrong,
            f"![Space-time diagram: {its.title}]({_file(chapter, its.name)})",
            repair,
            f"```sh\n{commands}\n```",
            _table(its.outcomes.heads, [texts(row) for row in its.outcomes.rows], 9),
        )
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]], words: int) -> str:
    names = [*heads]
    rule = ["---" if index < words else "---:" for index in range(len(names))]
    lines = (f"| {' | '.join(_cell(cell) for cell in row)} |" for row in (names, *rows))
    first, *others = lines
    return "\n".join((first, f"|{'|'.join(rule)}|", *others))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
