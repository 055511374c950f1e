"""``--open``: show a page in the browser that the user prefers."""

import argparse
import webbrowser
from pathlib import Path

from testbed.commands.terminal import complain


def add_open(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument("--open", action="store_true", help="open the page in a browser at the end")


def open_page(page: Path) -> None:
    """Open a page, or say why it cannot be."""
    if not page.exists():
        complain(f"{page}: there is no page to open")
    elif not webbrowser.open(page.resolve().as_uri()):
        complain(f"{page}: no browser could be started; the variable BROWSER may name one")
