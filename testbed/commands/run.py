"""``testbed run``: run the experiments of a file, check them, and show their figures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from testbed.commands.terminal import console, exit_status, print_json, progress_bar
from testbed.engines.mininet.fidelity import Fidelity
from testbed.experiment import ENGINES, load
from testbed.run import Run, choose_engine, run_experiment

# (label, key of the summary, format)
FIGURES: tuple[tuple[str, str, str], ...] = (
    ("causal order", "verdict", "{}"),
    ("messages multicast", "multicasts", "{:,}"),
    ("deliveries", "deliveries", "{:,}"),
    ("delay, mean (ms)", "delay_ms_mean", "{:,.3f}"),
    ("delay, max (ms)", "delay_ms_max", "{:,.3f}"),
    ("delivery queue, mean", "delivery_queue_mean", "{:,.3f}"),
    ("delivery queue, max", "delivery_queue_max", "{:,}"),
    ("network load, mean (packets)", "network_load_mean", "{:,.1f}"),
    ("link queue, max (packets)", "link_queue_max", "{:,}"),
    ("messages sent (fragments)", "messages", "{:,}"),
    ("bytes sent", "bytes", "{:,}"),
    ("of these control information", "control_bytes", "{:,}"),
    ("hops", "hops", "{:,}"),
)


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="run an experiment, check it, show its figures",
        description="Run an experiment file: every protocol that it names, on the same network and "
        "workload. Each run gets a directory of its own with its event log and figures, and is "
        "checked for causal order as it ends. Exit status: 0 causal order held, 1 it did not, "
        "2 the experiment could not be run.",
    )
    parser.add_argument("file", type=Path, help="experiment file (TOML); see scripts/experiments")
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help="simulate: a model, in seconds, at any scale; mininet: real packets on this kernel, as "
        "root; virtual: real packets in a user-mode kernel with exact time, no root; "
        "auto: mininet where it runs, else virtual",
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
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run all, then show all."""
    runs = []
    experiments = load(
        options.file, seed=options.seed, packets=options.packets, engine=options.engine
    )
    engine, why = choose_engine(experiments[0].engine)
    if experiments[0].engine == "auto" and not options.json:
        console().print(f"engine {engine}: {why}", soft_wrap=True)
    for experiment in experiments:
        with progress_bar(experiment.protocol.name) as progress:
            runs.append(run_experiment(experiment, options.runs, progress))
    if options.json:
        print_json([{**run.summary, "directory": str(run.path)} for run in runs])
    else:
        show(runs, console())
    return exit_status(run.verdict for run in runs)


def show(runs: Sequence[Run], out: Console) -> None:
    """The figures side by side, then where the runs are, then what is wrong with them."""
    first = runs[0]
    out.print(
        f"[bold]{first.experiment.name}[/]: {first.summary['nodes']} nodes, "
        f"{first.experiment.topology.model} topology, {first.experiment.workload.model} workload, "
        f"seed {first.experiment.seed}, engine {first.experiment.engine}",
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for run in runs:
        table.add_column(run.experiment.protocol.name, justify="right")
    for label, key, form in FIGURES:
        table.add_row(label, *(form.format(run.summary[key]) for run in runs))
    out.print(table)
    for run in runs:
        if "fidelity" in run.manifest:
            out.print(f"network: {Fidelity(**run.manifest['fidelity'])}", soft_wrap=True)
        out.print(f"results: {run.path}", soft_wrap=True)
        for sentence in run.verdict.explain(5) if not run.verdict.ok else ():
            out.print(f"  {sentence}", soft_wrap=True, markup=False)
