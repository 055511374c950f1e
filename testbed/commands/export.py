"""``testbed export``: a run as a file that Wireshark, ShiViz, TSViz or Perfetto opens."""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from testbed.commands.terminal import complain, console
from testbed.errors import UserError
from testbed.export.events import Event, Window, in_causal_order, read_events, with_clocks
from testbed.export.pcapng import write_pcapng
from testbed.export.perfetto import trace_events
from testbed.export.shiviz import COMFORTABLE, shiviz, tsviz
from testbed.runs.directory import RunDirectory
from testbed.runs.parts import whole

# format: the file's ending, and what opens it
FORMATS = {
    "pcapng": (".pcapng", "Wireshark or tshark"),
    "shiviz": (".shiviz", "ShiViz"),
    "tsviz": (".tsviz", "TSViz"),
    "perfetto": (".trace.json", "Perfetto's trace viewer"),
}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "export",
        description="Write a run as a file that another tool opens. --pcapng needs a run on mininet "
        "or virtual: one interface for each direction of each link, and a comment on each packet. "
        "The other formats are made from the event logs of any run.",
    )
    parser.add_argument("run", type=Path, help="run directory")
    formats = parser.add_mutually_exclusive_group(required=True)
    for name, (_, opens) in FORMATS.items():
        formats.add_argument(
            f"--{name}", dest="format", action="store_const", const=name, help=f"for {opens}"
        )
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="FILE",
        help="the file to write; by default it has the run's name and is in this directory",
    )
    parser.add_argument(
        "--from-ms", type=float, default=0, metavar="T", help="leave out what was before"
    )
    parser.add_argument("--to-ms", type=float, metavar="T", help="leave out what was after")
    parser.add_argument(
        "--nodes", type=_nodes, metavar="I,J,…", help="only events of these processes"
    )
    parser.set_defaults(command=command)


def _nodes(text: str) -> frozenset[int]:
    return frozenset(int(word.removeprefix("h")) for word in text.split(","))


def command(options: argparse.Namespace) -> int:
    """Write the file, whole or not at all, and say where it is."""
    run = RunDirectory(options.run)
    if (status := run.status) == "running":
        raise UserError(f"{run.path}: the run is still {status}")
    ending, opens = FORMATS[options.format]
    file = options.output or Path(run.path.resolve().name + ending)
    blocks = write_pcapng(run) if options.format == "pcapng" else _text(run, options)
    try:
        with whole(file) as part, part.open("wb") as out:
            out.writelines(blocks)
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None
    console().print(f"for {opens}: {file}", soft_wrap=True, markup=False)
    return 0


def _text(run: RunDirectory, options: argparse.Namespace) -> Iterator[bytes]:
    window = Window(
        begin=int(options.from_ms * 1e6),
        end=Window.end if options.to_ms is None else int(options.to_ms * 1e6),
        nodes=options.nodes,
    )
    events = list(in_causal_order(read_events(run)))
    shown = sum(map(window.shows, events))
    if not shown:
        raise UserError(f"{run.path}: no event is in this window")
    lines = _trace(events, window)
    if options.format in ("shiviz", "tsviz"):
        if shown > COMFORTABLE:
            complain(
                f"{shown:,} events are many for {FORMATS[options.format][1]}, which is comfortable "
                f"with {COMFORTABLE:,}; --from-ms, --to-ms and --nodes choose some"
            )
        lines = (shiviz if options.format == "shiviz" else tsviz)(with_clocks(events, window))
    return (f"{line}\n".encode() for line in lines)


def _trace(events: Iterable[Event], window: Window) -> Iterator[str]:
    """One JSON object, an event a line."""
    yield '{"displayTimeUnit": "ns", "traceEvents": ['
    comma = ""
    for event in trace_events(events, window):
        yield comma + json.dumps(event)
        comma = ","
    yield "]}"
