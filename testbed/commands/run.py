"""``testbed run``: run the experiments of a file, check them, and show their figures."""

import argparse
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from testbed.check.fidelity import Fidelity
from testbed.commands import terminal
from testbed.commands.browser import add_open, open_page
from testbed.commands.digest import add_master, digest_runs
from testbed.commands.terminal import complain, console, exit_status, print_json, progress_bar
from testbed.engines import choose_engine
from testbed.errors import ProtocolError, UserError
from testbed.experiment import AUTO, ENGINES, load
from testbed.figures import shown
from testbed.plugins import find_protocol, reference
from testbed.run import Run, run_experiment
from testbed.runs.directory import PAGE, RunDirectory


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        description="Run an experiment file: every protocol that it names, on the same network and "
        "workload. Each run gets a directory of its own, is checked for causal order as it ends, "
        "digested with Spark into tables and figures, and shown in report.html. Exit status: "
        "0 causal order held, 1 it did not, 2 the experiment could not be run or digested.",
    )
    parser.add_argument("file", type=Path, help="experiment file (TOML); see scripts/experiments")
    parser.add_argument(
        "--engine",
        choices=(*ENGINES, AUTO),
        help="simulate: a model, in seconds, at any scale; mininet: real packets on this kernel, as "
        "root; virtual: real packets in a user-mode kernel with exact time, no root; "
        "auto: mininet where it runs, else virtual",
    )
    parser.add_argument(
        "--protocol",
        action="append",
        metavar="NAME",
        help="run this protocol instead of the file's, with default settings; also ./mine.py:Mine; "
        "may be given several times",
    )
    parser.add_argument("--seed", type=int, help="use this seed instead of the file's")
    parser.add_argument(
        "--packets",
        choices=("counters", "full"),
        help="full: also write every packet on every link to packets/links.parquet",
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="where run directories go (default: runs)"
    )
    parser.add_argument(
        "--no-digest",
        dest="digest",
        action="store_false",
        help="stop when the runs are checked: no tables, no plots, no page",
    )
    add_master(parser)
    add_open(parser)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run all, then show all."""
    runs = []
    instead = [{"name": reference(find_protocol(name))} for name in options.protocol or ()]
    experiments = load(
        options.file,
        seed=options.seed,
        packets=options.packets,
        engine=options.engine,
        protocol=instead or None,
    )
    engine, why = choose_engine(experiments[0].engine)
    if experiments[0].engine == AUTO and not options.json:
        console().print(f"engine {engine}: {why}", soft_wrap=True)
    failed = []
    with spark_ahead(options.master) if options.digest and engine != "mininet" else nullcontext():
        for experiment in experiments:
            with progress_bar(experiment.protocol.name) as progress:
                try:
                    what = replace(experiment, engine=engine)
                    runs.append(run_experiment(what, options.runs, progress, warn=complain))
                except ProtocolError as error:  # the others are run all the same
                    failed.append(str(error))
        digested, wrong = digest(runs, options.master) if options.digest and runs else ([], [])
    wrong += report(digested) if digested else []
    if options.json:
        print_json([{**RunDirectory(r.path).summary, "directory": str(r.path)} for r in runs])
    elif runs:
        show(runs, console())
    for sentence in (*wrong, *failed):
        complain(sentence)
    if options.open and runs:
        open_page((runs[0].path if len(runs) == 1 else runs[0].path.parent) / PAGE)
    verdicts = [*(run.verdict.verdict for run in runs), *("unknown" for _ in failed)]
    return exit_status(verdicts) or (2 if wrong else 0)


def spark_ahead(master: str) -> AbstractContextManager[None]:
    """Spark starts while the network runs, unless it does so in real time, which would suffer."""
    try:
        from testbed.digest import WORKERS
        from testbed.spark.session import context_ahead
    except UserError:  # the digest will say so
        return nullcontext()
    return context_ahead(master, *WORKERS)


def digest(runs: Sequence[Run], master: str) -> tuple[list[Path], list[str]]:
    """Tables and figures: the runs that have them, and a sentence for all that is wrong."""
    try:
        digests, wrong = digest_runs([run.path for run in runs], master)
    except UserError as error:
        return [], [f"the runs are complete but not digested: {error}"]
    wrong += [f"{digest.path}: {problem}" for digest in digests for problem in digest.problems]
    return [digest.path for digest in digests], wrong


def report(paths: Sequence[Path]) -> list[str]:
    """The pages of digested runs; a sentence if there can be none."""
    try:
        from testbed.report import write_reports
    except UserError as error:
        return [f"the runs are digested but have no page: {error}"]
    with progress_bar("report") as progress:
        write_reports(paths, None, progress)
    return []


def show(runs: Sequence[Run], out: Console) -> None:
    """The figures side by side, then where the runs are, then what is wrong with them."""
    first = runs[0]
    out.print(
        f"[bold]{first.experiment.name}[/]: {first.summary['nodes']} nodes, "
        f"{first.experiment.topology.model} topology, {first.experiment.workload.model} workload, "
        f"seed {first.experiment.seed}, engine {first.experiment.engine}",
        soft_wrap=True,
    )
    names = [run.experiment.protocol.name for run in runs]
    if len(set(names)) < len(runs):
        names = [run.experiment.label.replace(", ", "\n") for run in runs]
    table = terminal.new_table([""], names)
    for figure in shown(run.summary for run in runs):
        table.add_row(figure.title, *(figure.text(run.summary.get(figure.key)) for run in runs))
    out.print(table)
    for run in runs:
        if "fidelity" in run.manifest:
            out.print(f"network: {Fidelity(**run.manifest['fidelity'])}", soft_wrap=True)
        page = RunDirectory(run.path).page
        out.print(f"results: {page if page.exists() else run.path}", soft_wrap=True)
        for sentence in run.manifest.get("why", ()):
            out.print(f"  {sentence}", soft_wrap=True, markup=False)
    if len(runs) > 1 and all(RunDirectory(run.path).page.exists() for run in runs):
        out.print(f"comparison: {first.path.parent / PAGE}", soft_wrap=True)
