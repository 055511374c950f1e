"""What the commands share of the terminal: where output goes, and progress on long work."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from testbed.commands.progress import progress_bar as progress_bar

NARROWEST, USUAL = 20, 80  # columns of a terminal
WIDTH = 140  # of a table that goes to a file


def console(wide: bool = False) -> Console:
    """Standard output for people; a ``wide`` table that goes to a file is not cut at its end."""
    out = Console(highlight=False)
    if out.width < NARROWEST:  # COLUMNS=0, for one, which would show nothing
        out.width = USUAL
    if wide and not out.is_terminal:
        out.width = WIDTH
    return out


def new_table(words: Iterable[str], numbers: Iterable[str] = ()) -> Table:
    """A table with these columns of words and then these of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in words:
        table.add_column(head)
    for head in numbers:
        table.add_column(head, justify="right")
    return table


def print_json(content: Any) -> None:
    """Standard output for scripts."""
    json.dump(content, sys.stdout, indent=1)
    sys.stdout.write("\n")


def complain(sentence: str) -> None:
    """Standard error, for what is wrong."""
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    errors.print(f"testbed: {sentence}")


def exit_status(verdicts: Iterable[str]) -> int:
    """What a script is told: 0 all valid, 1 a violation, 2 a run that cannot be judged."""
    found = set(verdicts)
    return 1 if "invalid" in found else 2 if found - {"valid"} else 0
