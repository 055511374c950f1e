"""``testbed new``: write the start of something of your own."""

import argparse
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from testbed.commands.terminal import console
from testbed.errors import UserError
from testbed.plugins import BUILT_IN, installed

TEMPLATE, CLASS = "fifo", "Fifo"  # names in the templates, which are replaced
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "new",
        description="Write two files into this directory: a protocol that runs, with comments on what "
        "to change, and its tests. Exit status: 0 they are there, 2 they could not be written.",
    )
    parser.add_argument("kind", choices=("protocol",), help="what to begin")
    parser.add_argument("name", help="its name: small letters, digits and '-'")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Write the files, neither of which may be there."""
    name = options.name
    if not _NAME.fullmatch(name) or len(name) > 50:
        raise UserError(
            f"{name}: a protocol's name has small letters, digits and '-', such as my-own"
        )
    if name in {*BUILT_IN, *installed()}:
        raise UserError(f"{name}: there is a protocol of that name; choose another")
    stem, cls = name.replace("-", "_"), "".join(map(str.capitalize, name.split("-")))
    texts = {Path(f"{start}{stem}.py"): _text(start, name, stem, cls) for start in ("", "test_")}
    for file in texts:
        if file.exists():
            raise UserError(f"{file}: there is such a file already; choose another name")
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    out = console()
    out.print(f"written: {', '.join(map(str, texts))}")
    out.print(f"try it: testbed explore --protocol ./{stem}.py")
    return 0


def _text(start: str, name: str, stem: str, cls: str) -> str:
    template = files("testbed.commands.templates") / f"{start}{TEMPLATE}.py"
    text = template.read_text(encoding="utf-8").replace(f"{TEMPLATE}.py", f"{stem}.py")
    return text.replace(f'"{TEMPLATE}"', f'"{name}"').replace(CLASS, cls)
