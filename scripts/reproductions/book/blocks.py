"""What a chapter's text consists of: prose, and what it names in braces."""

import re
from collections.abc import Iterator, Mapping

from scripts.reproductions.chapter import Chapter, Plot, Table
from testbed.errors import UserError

NAME = re.compile(r"\{([a-z][a-z0-9_-]*)\}")
CLAIMS, ERRATA = "claims", "errata"
Block = str | Table | Plot  # prose in Markdown; CLAIMS and ERRATA stand for themselves


def blocks(chapter: Chapter) -> Iterator[Block]:
    """The parts of a text in its order, with all numbers put in."""
    named: Mapping[str, Block] = {
        CLAIMS: CLAIMS,
        ERRATA: ERRATA,
        **{table.name: table for table in chapter.tables},
        **{plot.name: plot for plot in chapter.plots},
    }
    prose: list[str] = []
    for line in chapter.text.splitlines():
        alone = NAME.fullmatch(line.strip())
        if alone is None:
            prose.append(_with_numbers(line, chapter))
            continue
        yield from _whole(prose)
        if alone[1] in named:  # what was not run at this scale is not there
            yield named[alone[1]]
    yield from _whole(prose)


def unnamed(chapter: Chapter) -> tuple[list[Table], list[Plot]]:
    """The tables and the plots that the text does not name."""
    names = {
        found[1] for line in chapter.text.splitlines() if (found := NAME.fullmatch(line.strip()))
    }
    tables = [table for table in chapter.tables if table.name not in names]
    return tables, [plot for plot in chapter.plots if plot.name not in names]


def _whole(prose: list[str]) -> Iterator[str]:
    text = "\n".join(prose).strip()
    prose.clear()
    if text:
        yield text


def _with_numbers(line: str, chapter: Chapter) -> str:
    def number(name: re.Match[str]) -> str:
        try:
            return chapter.values[name[1]]
        except KeyError:
            raise UserError(
                f"text.md of {chapter.name}: {name[0]} is no value of this chapter; there are "
                f"{', '.join(sorted(chapter.values)) or 'none'}"
            ) from None

    return NAME.sub(number, line)
