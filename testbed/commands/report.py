"""``testbed report``: figures and a page for each run, and one that compares them."""

import argparse
from pathlib import Path
from typing import Any

from testbed.commands.terminal import console, print_json, progress_bar
from testbed.runs.directory import expanded


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "report",
        description="Write figures/*.svg, figures/*.png and report.html into each run's directory, "
        "and for several runs one more page that compares them. A page is one file with all that "
        "it shows, including an interactive space-time diagram. The runs must have been digested.",
    )
    parser.add_argument(
        "run", type=Path, nargs="+", help="run directory, or a directory of runs such as a sweep's"
    )
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="DIR",
        help="where the comparison goes (default: the directory that all the runs are in)",
    )
    parser.add_argument("--json", action="store_true", help="print the pages' paths as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Write the pages, then say where they are."""
    from testbed.report import write_reports

    with progress_bar("report") as progress:
        pages = write_reports(expanded(options.run), options.output, progress)
    if options.json:
        print_json([str(page) for page in pages])
    else:
        for page in pages:
            console().print(f"report: {page}", soft_wrap=True)
    return 0
