"""The points of a sweep as Spark tasks: the largest first, on all the cores that Spark has.

Every point is a job of one task. So results come in as points end, and a worker that the kernel
kills takes its own point along and no other. Emulation in real time needs the machine to itself and
runs one point after the other, here. Machines share no more than the directory of the runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.plugins.source import source_of
from testbed.progress import Progress
from testbed.run import run_experiment
from testbed.runs.directory import SWEPT
from testbed.runs.parts import whole
from testbed.spark.session import context
from testbed.sweep.directory import busy, finished, locked, remove_unfinished
from testbed.sweep.moving import told, watched
from testbed.sweep.points import Sweep, cost
from testbed.sweep.tables import averages, results

if TYPE_CHECKING:
    import pandas as pd
    from pyspark import SparkContext

Outcome = tuple[str, str | None]  # a point, and why it failed if it did
Weight = Callable[[Experiment], float]


@dataclass(frozen=True)
class Swept:
    """A sweep that has ended: its tables, and the points that have no run, with the reason."""

    directory: Path
    points: pd.DataFrame
    trends: pd.DataFrame
    failed: dict[str, str]


def run_sweep(
    sweep: Sweep,
    text: str | None,
    runs: Path,
    master: str,
    say: Callable[[str], None],
    progress: Progress,
    weight: Weight = cost,
    strict: bool = False,
    fresh: bool = False,
) -> Swept:
    """Run all points that have not been run yet, or all if ``fresh``, and write the tables.

    ``text`` is the file that was swept, if there is one; ``say`` is called with a sentence on what an
    earlier start has left. Points of most weight come first. If ``strict``, the first point that fails
    ends the sweep.
    """
    runs = runs.resolve()
    directory = runs / sweep.within
    with locked(directory):
        removed = remove_unfinished(directory)
        done = {} if fresh else finished(directory, sweep)
        if done or removed:
            left = f"; {removed} unfinished removed" if removed else ""
            say(f"resuming: {len(done)} of {len(sweep.points)} runs are done{left}")
        if text is not None:
            (directory / SWEPT).write_text(text, encoding="utf-8")
            _keep_files(sweep, directory)
        failed = {}
        progress("runs", len(done), len(sweep.points))
        todo = [point for point in sweep.points if point not in done]
        with (
            watched(directory, progress),
            closing(_run(sweep, todo, runs, master, weight)) as outcomes,
        ):
            for number, (point, error) in enumerate(outcomes, len(done) + 1):
                progress("runs", number, len(sweep.points))
                if error is not None:
                    failed[point] = error
                    if strict:
                        raise UserError(f"{directory}: {error}")
        return _conclude(sweep, directory, failed)


def _keep_files(sweep: Sweep, directory: Path) -> None:
    """Put the files of protocols where ``sweep.toml`` looks for them, if that is in there."""
    for experiment in sweep.points.values():
        source, file = source_of(experiment.protocol), experiment.file
        if source and file and source.file.is_relative_to(file.parent.absolute()):
            kept = directory / source.file.relative_to(file.parent.absolute())
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(source.text, encoding="utf-8")


def run_points(
    sweep: Sweep, runs: Path, master: str, progress: Progress, weight: Weight = cost
) -> pd.DataFrame:
    """Run all points that have not been run yet, those of most weight first.

    A row for each point; all must have succeeded and been found valid.
    """
    swept = run_sweep(sweep, None, runs, master, lambda _: None, progress, weight, strict=True)
    for run, verdict in zip(swept.points["run"], swept.points["verdict"], strict=True):
        if verdict != "valid":
            raise UserError(f"{swept.directory / run}: causal order is {verdict}")
    return swept.points


def run_point(sweep: str, point: str, experiment: Experiment, runs: Path) -> str | None:
    """Run one point within the directory of its sweep; why it failed, if it did."""
    try:
        with busy(runs / sweep), told(runs / sweep, point) as progress:
            run_experiment(experiment, runs, progress, within=sweep, point=point)
    except UserError as error:
        return str(error)
    except Exception as error:  # whatever it is, the other points go on
        return f"{type(error).__name__}: {error}"
    return None


def _run(
    sweep: Sweep, todo: list[str], runs: Path, master: str, weight: Weight
) -> Generator[Outcome]:
    real_time = [point for point in todo if sweep.points[point].engine == "mininet"]
    for point in real_time:
        yield point, run_point(sweep.within, point, sweep.points[point], runs)
    tasks = [point for point in todo if point not in real_time]
    if tasks:
        with context(master) as spark:
            tasks.sort(key=lambda point: weight(sweep.points[point]), reverse=True)
            yield from run_tasks(spark, sweep, tasks, runs)


def run_tasks(
    spark: SparkContext, sweep: Sweep, points: list[str], runs: Path
) -> Iterator[Outcome]:
    """Run points as jobs in this order; their outcomes as they end."""
    threads = min(len(points), 2 * spark.defaultParallelism)  # one job runs, the next waits
    pool = ThreadPoolExecutor(threads)
    try:
        jobs = {pool.submit(_job, spark, sweep, point, runs): point for point in points}
        for job in as_completed(jobs):
            yield jobs[job], job.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        spark.cancelAllJobs()


def _job(spark: SparkContext, sweep: Sweep, point: str, runs: Path) -> str | None:
    from py4j.protocol import Py4JError

    within, experiment, command = sweep.within, sweep.points[point], sys.argv[1:]

    def task(_: int) -> str | None:
        sys.argv[1:] = command  # what the manifest says was called, and not Spark's worker
        return run_point(within, point, experiment, runs)

    try:
        (outcome,) = spark.parallelize([0], 1).map(task).collect()
    except Py4JError as error:
        return f"its worker died: {_first_line(error)}"
    return outcome


def _first_line(error: Any) -> str:
    java = getattr(error, "java_exception", None)
    return str(java.getMessage() if java is not None else error).strip().splitlines()[0]


def _conclude(sweep: Sweep, directory: Path, failed: dict[str, str]) -> Swept:
    done = finished(directory, sweep)
    if not done:
        reason = next(iter(failed.values()))
        raise UserError(f"{directory}: none of {len(sweep.points)} runs succeeded: {reason}")
    points = results(sweep, done)
    trends = averages(points)
    for name, table in (("points", points), ("trends", trends)):
        with whole(directory / f"{name}.parquet") as part:
            table.to_parquet(part, index=False)
    return Swept(directory, points, trends, failed)
