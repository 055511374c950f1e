"""``testbed dissector``: the Lua script by which Wireshark and tshark understand the messages."""

import argparse
import sys
from pathlib import Path
from typing import Any

from testbed.commands.terminal import console
from testbed.errors import UserError
from testbed.export.dissector import dissector
from testbed.runs.parts import whole

PLUGINS = Path(".local/lib/wireshark/plugins")  # in the home directory: Wireshark's personal ones
NAME = "causal-testbed.lua"


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "dissector",
        description="Write the script by which Wireshark and tshark show every field of the "
        "testbed's messages, and filter by them (co.source == 3 && co.vector.2 > 5). Without an "
        "option it goes to standard output: tshark -X lua_script:FILE -r CAPTURE.",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--install",
        action="store_true",
        help=f"put it where Wireshark looks for it, ~/{PLUGINS}",
    )
    where.add_argument("--output", "-o", type=Path, metavar="FILE", help="the file to write")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Write the script where it was asked for."""
    file = Path.home() / PLUGINS / NAME if options.install else options.output
    if file is None:
        sys.stdout.write(dissector())
        return 0
    try:
        if options.install:
            file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file) as part:
            part.write_text(dissector(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None
    console().print(f"dissector: {file}", soft_wrap=True, markup=False)
    return 0
