"""``testbed compare``: runs side by side, what differs in what was asked and in what came out."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.markup import escape

from testbed.commands.terminal import complain, console, exit_status, new_table, print_json
from testbed.errors import UserError
from testbed.experiment.expand import flatten
from testbed.figures import shown
from testbed.protocols import Figure
from testbed.runs.directory import RunDirectory, expanded


@dataclass(frozen=True)
class Compared:
    """A finished run: its experiment's keys, its figures, and how true its network was."""

    path: Path
    settings: dict[str, Any]
    summary: dict[str, Any]
    network: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """A run directory, or a sentence on why it cannot be compared."""
        run = RunDirectory(path)
        if (status := run.status) != "complete":
            raise UserError(f"{path}: the run is {status}; only a complete run has figures")
        network = run.manifest.get("fidelity", {}).get("verdict", "simulated")
        summary = {**run.summary, "verdict": run.verdict}
        return cls(path, flatten(run.document), summary, network)


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        description="Show finished runs side by side: what differs in their experiments, then their "
        "figures with the ratio to the first run's, or the difference if it is small. Exit status: "
        "0 all valid, 1 a violation of causal order in one, 2 a run that cannot be compared or was "
        "not judged.",
    )
    parser.add_argument(
        "run",
        type=Path,
        nargs="+",
        help="run directory, or a directory of runs; the first is the baseline",
    )
    parser.add_argument("--json", action="store_true", help="print differences and all figures")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Compare what can be compared, and say what cannot."""
    runs, problems = [], []
    for path in expanded(options.run):
        try:
            runs.append(Compared.read(path))
        except UserError as error:
            problems.append(str(error))
    for problem in problems:
        complain(problem)
    if options.json:
        print_json({"runs": [_json(run, runs[0]) for run in runs], "differ": differences(runs)})
    elif runs:
        show(runs, console(wide=True))
    verdicts = [run.summary.get("verdict", "unknown") for run in runs]
    return exit_status([*verdicts, *("unknown" for _ in problems)])


def differences(runs: Sequence[Compared]) -> dict[str, list[Any]]:
    """The keys in which the experiments differ, with the value of each run."""
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    rows = {key: [run.settings.get(key) for run in runs] for key in keys}
    return {key: row for key, row in rows.items() if any(value != row[0] for value in row)}


def ratios(run: Compared, first: Compared) -> dict[str, float]:
    """A run's figures as multiples of the first's, where that is not nothing."""
    return {
        key: value / base
        for key, value in run.summary.items()
        if isinstance(value, int | float)
        and isinstance(base := first.summary.get(key), int | float)
        and base
        and key != "seed"
    }


def show(runs: Sequence[Compared], out: Console) -> None:
    """The runs, what differs in their experiments, their figures."""
    for number, run in enumerate(runs, 1):
        out.print(f"{number}: {escape(str(run.path))}", soft_wrap=True)
    names = (run.settings["protocol.name"] for run in runs)
    table = new_table([""], [f"{number} {name}" for number, name in enumerate(names, 1)])
    for key, values in differences(runs).items():
        table.add_row(key, *("-" if value is None else escape(str(value)) for value in values))
    table.add_section()
    for figure in shown(run.summary for run in runs):
        base, *others = (run.summary.get(figure.key) for run in runs)
        cells = (" ".join((figure.text(other), *_beside(figure, base, other))) for other in others)
        table.add_row(figure.title, figure.text(base), *cells)
    table.add_row("network", *(run.network for run in runs))
    out.print(table)


def _beside(figure: Figure, base: Any, value: Any) -> Iterator[str]:
    """What is said of a figure beside its value: the ratio, or a difference too small for one."""
    if not all(isinstance(each, int | float) for each in (base, value)) or not base:
        return
    ratio, difference = f"×{value / base:.2f}", value - base
    if difference and ratio == "×1.00" and figure.unit == "ms":
        nanoseconds = difference * 1e6
        yield (
            f"{nanoseconds:+,.0f} ns"
            if abs(nanoseconds) < 10_000
            else f"{nanoseconds / 1e3:+,.0f} µs"
        )
    elif difference and ratio == "×1.00" and isinstance(difference, int):
        yield f"{difference:+,}"
    else:
        yield ratio


def _json(run: Compared, first: Compared) -> dict[str, Any]:
    return {
        "directory": str(run.path),
        "network": run.network,
        "figures": run.summary,
        "ratios": ratios(run, first),
    }
