"""How reproductions run what they measure: on Spark, once, and going on where they were stopped.

Experiments are run directories like those of any sweep, unless there are too many deliveries to write
down. What is measured by a function of its own is kept in a file, a line for each piece, which counts
as long as the code is the same.
"""

import math
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from inspect import getfile
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

from scripts.reproductions.measuring import measured
from scripts.searches import Memory, fingerprint, search
from testbed.commands.terminal import progress_bar
from testbed.experiment import Experiment
from testbed.runs.directory import RunDirectory
from testbed.sweep.points import Sweep, cost
from testbed.sweep.runner import run_points

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
Key = TypeVar("Key")
Piece = TypeVar("Piece")
Row = dict[Any, Any]  # the summary of a run
ALL = "all"  # protocols


@dataclass
class Effort:
    """What all runs of a chapter took, whenever they were made."""

    runs: int = 0
    seconds: float = 0.0
    protocols: set[str] = field(default_factory=set)  # that were run; ALL if that is not known


def run(
    points: Mapping[Key, Sequence[Experiment]],
    options: Namespace,
    weight: Callable[[Experiment], float] = cost,
    absent: float = math.nan,
) -> dict[Key, list[Row]]:
    """Run the experiments that have not been run yet, those of most weight first; their summaries.

    An experiment that belongs to several points is run once. ``absent`` stands for a figure that
    other runs have.
    """
    sweep = Sweep.of([experiment for each in points.values() for experiment in each])
    options.effort.protocols |= {e.protocol.name for e in sweep.points.values()}
    with progress_bar(sweep.name) as progress:
        frame = run_points(sweep, options.runs, options.master, progress, weight)
    for name in frame["run"]:
        options.effort.runs += 1
        options.effort.seconds += took(options.runs / sweep.within / name)
    rows = {row["point"]: row for row in frame.fillna(absent).to_dict("records")}
    return {
        key: [rows[identity] for identity in Sweep.of([*each]).points]
        for key, each in points.items()
    }


def took(path: Path) -> float:
    """How many seconds of a processor a run took; if it was emulated, how long it lasted."""
    manifest = RunDirectory(path).manifest
    if manifest["engine"] == "simulate" and "processor_s" in manifest:
        return float(manifest["processor_s"])
    begun, ended = (datetime.fromisoformat(manifest[key]) for key in ("started", "ended"))
    return (ended - begun).total_seconds()


def measure(
    points: Mapping[Key, Sequence[Experiment]],
    options: Namespace,
    weight: Callable[[Experiment], float],
) -> dict[Key, list[Row]]:
    """The figures of experiments of which no more is kept, those of most weight first."""
    sweep = Sweep.of([experiment for each in points.values() for experiment in each])
    pieces = sorted(sweep.points.items(), key=lambda piece: weight(piece[1]), reverse=True)
    # The name of a point has a hash of the protocol's code in it, as that of a run directory.
    names = {experiment.protocol.name for experiment in sweep.points.values()}
    rows = compute(sweep.name, measured, dict(pieces), options, names, code="measured")
    return {
        key: [rows[identity] for identity in Sweep.of([*each]).points]
        for key, each in points.items()
    }


def compute(
    what: str,
    function: Callable[[Piece], Any],
    pieces: Mapping[str, Piece],
    options: Namespace,
    protocols: Iterable[str] = (ALL,),
    code: str = "",
) -> dict[str, Any]:
    """A module's function of each piece, in plain data; at once where that is known.

    ``protocols`` are those that it runs. What was found by other code does not count; ``code`` is by
    which it is known, if not by its text.
    """
    options.effort.protocols |= {*protocols}
    code = code or fingerprint(Path(getfile(function)).resolve())
    memory = Memory(options.runs / f"{what}.jsonl", code)
    found = {}
    with progress_bar(what) as progress:
        outcomes = search(pieces, Timed(function), memory, options.master)
        known = [name for name in pieces if name in memory.found]
        names = [*known, *(name for name in pieces if name not in known)]
        for name, (result, seconds) in zip(names, outcomes, strict=True):
            found[name] = result
            options.effort.runs += 1
            options.effort.seconds += seconds
            progress("pieces", len(found), len(pieces))
    return {name: found[name] for name in pieces}


@dataclass(frozen=True)
class Timed:
    """A function whose result comes with the processor time that it took."""

    function: Callable[[Any], Any]

    def __call__(self, piece: Any) -> tuple[Any, float]:
        """The result, and the seconds."""
        begun = process_time()
        return self.function(piece), process_time() - begun


def total(
    points: Mapping[Any, Sequence[Experiment]], weight: Callable[[Experiment], float]
) -> float:
    """The weight of all runs, equal ones once; the same sum in whatever order they come."""
    return math.fsum(map(weight, {experiment for each in points.values() for experiment in each}))
