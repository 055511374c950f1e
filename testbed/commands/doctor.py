"""``testbed doctor``: what this machine can do, and what mends the rest."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape

from testbed.commands.terminal import console, new_table, print_json
from testbed.engines import choose_engine
from testbed.engines.needs import abilities, emulation_in_real_time
from testbed.errors import SETUP, UserError

CHECKOUT = Path(__file__).parents[2] / "scripts" / "run"  # which a wheel does not have


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        description="Look at this machine: which engines can run here, what is missing, and how "
        "to fix it. Exit status: 0 an emulation engine runs here, 2 only the simulator.",
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="where run directories go (default: runs)"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(command=command)


def next_step(engine: str) -> str:
    """What to do now."""
    near = CHECKOUT.is_relative_to(Path.cwd())
    script = CHECKOUT.relative_to(Path.cwd()) if near else CHECKOUT
    run = str(script) if CHECKOUT.exists() else "testbed run FILE.toml"
    if engine != "simulate":
        return run
    only_root = [lack.name for lack in emulation_in_real_time()] == ["root"]
    emulate = f"sudo {run}" if only_root else SETUP
    return f"{emulate}, or, without emulation, {run} --engine simulate"


def command(options: argparse.Namespace) -> int:
    """Print what there is and what is missing."""
    found = abilities(options.runs.resolve())
    try:
        engine, why = choose_engine("auto")
        verdict = f"is [bold]{engine}[/] here"
    except UserError as error:
        engine, why, verdict = "simulate", str(error), "runs nothing here"
    if options.json:
        facts = {"engine": engine, "why": why, "next": next_step(engine)}
        print_json({**facts, "abilities": [asdict(ability) for ability in found]})
    else:
        out = console()
        table = new_table(["", "", "serves", "how to fix it"])
        for column in table.columns:
            column.overflow = "fold"  # a command that is cut cannot be copied
        for ability in found:
            mark = "[green]✓[/]" if ability.ok else "[red]✗[/]"
            remedy = "" if ability.ok else escape(ability.remedy)
            table.add_row(f"{mark} {ability.name}", ability.detail, ability.serves, remedy)
        out.print(table)
        out.print(f'\nengine "auto" {verdict}: {escape(why)}', soft_wrap=True)
        out.print(f"next: {escape(next_step(engine))}", soft_wrap=True)
    return 0 if engine != "simulate" else 2
