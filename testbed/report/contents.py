"""The sections of a page and its table of contents, which has numbers, as paper has no links."""

from collections.abc import Mapping, Sequence
from html import escape


def anchor(name: str) -> str:
    """By what a section is linked to."""
    return name.lower().replace(" ", "-")


def contents(
    sections: Mapping[str, str], parts: Mapping[str, Sequence[tuple[str, str]]] | None = None
) -> str:
    """The list of sections; of some also their parts, as (anchor, name)."""
    rows = []
    for number, name in enumerate(sections, 1):
        below = (parts or {}).get(name, ())
        words = [f'<a href="#{escape(to)}">{escape(its)}</a>' for to, its in below]
        figures = f" <small>({', '.join(words)})</small>" if words else ""
        rows.append(f'<li>{number} <a href="#{anchor(name)}">{escape(name)}</a>{figures}</li>')
    return f"<ol>{''.join(rows)}</ol>"


def numbered(sections: Mapping[str, str]) -> str:
    """The sections, with the numbers of the table of contents."""
    return "\n".join(
        f'<section id="{anchor(name)}" aria-labelledby="{anchor(name)}-title">'
        f'<h2 id="{anchor(name)}-title">{number} {escape(name)}</h2>\n{content}\n</section>'
        for number, (name, content) in enumerate(sections.items(), 1)
    )
