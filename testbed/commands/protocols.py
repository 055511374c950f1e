"""``testbed protocols``: which protocols there are, and what can be set."""

import argparse
import dataclasses
import inspect
import sys
from typing import Any, Literal, get_args, get_origin, get_type_hints

from testbed.commands.terminal import complain, console, print_json
from testbed.errors import UserError
from testbed.plugins import find_protocol, installed
from testbed.plugins.source import source_of
from testbed.protocols import PROTOCOLS, Protocol
from testbed.protocols.broken import BROKEN, BROKEN_CLUSTERS

HEADINGS = ("State", "Cost", "Limits", "Invariant")


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "protocols",
        description="List the protocols: the paper that each comes from, how it works, and the keys "
        "that the [protocol] table of an experiment may set.",
    )
    parser.add_argument(
        "name", nargs="?", help="protocol to explain; broken-* too, or ./mine.py:Mine"
    )
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Print them."""
    chosen = [find_protocol(options.name)] if options.name else every_protocol()
    if options.json:
        print_json([describe(protocol) for protocol in chosen])
        return 0
    out = console()
    for protocol in chosen:
        facts = describe(protocol)
        out.print(f"[bold]{facts['name']}[/]  {facts['summary']}")
        out.print(f"  {facts['paper']}; {facts['file']}", markup=False)
        for key, setting in facts["settings"].items():
            out.print(f"  {key} = {setting['default']!r}: {setting['values']}", markup=False)
        if options.name:
            if facts["settings"]:
                out.print("\n" + flowing(protocol.Settings.__doc__ or ""), markup=False)
            out.print("\n" + flowing(_docstring(protocol)), markup=False)
    if not options.name:
        out.print(f"\nEach of these has a mistake, for exercises: {', '.join(BROKEN)}.")
        printed = ", ".join(BROKEN_CLUSTERS)
        out.print(f"\nAs Gidenstam et al. print them, with tickets that get two owners: {printed}.")
    return 0


def every_protocol() -> list[type[Protocol]]:
    """Those of the testbed and of installed packages; one that cannot be loaded harms no other."""
    found = list(PROTOCOLS.values())
    for name in installed():
        try:
            found.append(find_protocol(name))
        except UserError as error:
            complain(str(error))
    return found


def flowing(text: str) -> str:
    """A docstring whose lines are as long as the terminal wants; what is indented or listed stays."""
    lines: list[str] = []
    for line in inspect.cleandoc(text).splitlines():
        starts = line == "" or line[0] in " -|" or line.split(".")[0].split(":")[0] in HEADINGS
        if starts or not lines or lines[-1] == "" or lines[-1][0] in " |":
            lines.append(line)
        else:
            lines[-1] += " " + line
    return "\n".join(lines)


def describe(protocol: type[Protocol]) -> dict[str, Any]:
    """A protocol in plain data."""
    hints = get_type_hints(protocol.Settings)
    return {
        "name": protocol.name,
        "summary": next(iter(inspect.cleandoc(protocol.__doc__ or "").splitlines()), ""),
        "paper": protocol.paper,
        "file": _file(protocol),
        "needs_overlay": protocol.needs_overlay,
        "settings": {
            field.name: {"default": field.default, "values": _values(hints[field.name])}
            for field in dataclasses.fields(protocol.Settings)
        },
    }


def _values(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_args(hint):
        return " or ".join(map(_values, get_args(hint)))
    return "none" if hint is type(None) else getattr(hint, "__name__", str(hint))


def _file(protocol: type[Protocol]) -> str:
    source = source_of(protocol)
    return str(source.file) if source else protocol.__module__.replace(".", "/") + ".py"


def _docstring(protocol: type[Protocol]) -> str:
    if protocol.name in BROKEN | BROKEN_CLUSTERS:  # many in one module
        return protocol.__doc__ or ""
    return sys.modules[protocol.__module__].__doc__ or ""
