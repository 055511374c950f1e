"""The points of a sweep as Spark tasks: the largest first, on all the cores that Spark has.

Every point is a job of one task. So results come in as points end, and a worker that the system
kills takes its own point along and no other. Emulation in real time needs the machine to itself and
runs one point after the other, here. Machines share no more than the directory of the runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.progress import Progress
from testbed.spark.session import session
from testbed.sweep.points import (
    Sweep,
    averages,
    cost,
    finished,
    locked,
    remove_unfinished,
    results,
    run_point,
    write_table,
)

if TYPE_CHECKING:
    import pandas as pd
    from pyspark import SparkContext

Outcome = tuple[str, str | None]  # a point, and why it failed if it did


@dataclass(frozen=True)
class Swept:
    """A sweep that has ended: its tables, and the points that have no run, with the reason."""

    directory: Path
    points: pd.DataFrame
    trends: pd.DataFrame
    failed: dict[str, str]


def run_sweep(
    sweep: Sweep,
    text: str,
    runs: Path,
    master: str,
    say: Callable[[str], None],
    progress: Progress,
) -> Swept:
    """Run all points that have not been run yet, and write the tables.

    ``text`` is the file that was swept; ``say`` is told what was found of an earlier start.
    """
    runs = runs.resolve()
    directory = runs / sweep.within
    with locked(directory):
        removed = remove_unfinished(directory, sweep)
        done = finished(directory, sweep)
        if done or removed:
            left = f"; {removed} unfinished removed" if removed else ""
            say(f"resuming: {len(done)} of {len(sweep.points)} runs are done{left}")
        (directory / "sweep.toml").write_text(text, encoding="utf-8")
        failed = {}
        progress("runs", len(done), len(sweep.points))
        todo = [point for point in sweep.points if point not in done]
        with closing(_run(sweep, todo, runs, master, progress)) as outcomes:
            for number, (point, error) in enumerate(outcomes, len(done) + 1):
                progress("runs", number, len(sweep.points))
                if error is not None:
                    failed[point] = error
        return _conclude(sweep, directory, failed)


def run_points(
    sweep: Sweep,
    runs: Path,
    master: str,
    progress: Progress,
    weight: Callable[[Experiment], float] = cost,
) -> pd.DataFrame:
    """Run all points of simulations that have not been run yet, those of most weight first.

    A row for each point; all must have succeeded and been found valid.
    """
    runs = runs.resolve()
    directory = runs / sweep.within
    with locked(directory):
        remove_unfinished(directory, sweep)
        done = finished(directory, sweep)
        progress("runs", len(done), len(sweep.points))
        todo = [point for point in sweep.points if point not in done]
        todo.sort(key=lambda point: weight(sweep.points[point]), reverse=True)
        with session(master, small=True) if todo else nullcontext() as spark:
            outcomes = run_tasks(spark.sparkContext, sweep, todo, runs) if spark else ()
            for number, (_, error) in enumerate(outcomes, len(done) + 1):
                progress("runs", number, len(sweep.points))
                if error is not None:
                    raise UserError(f"{directory}: {error}")
        frame = results(sweep, finished(directory, sweep))
        write_table(frame, directory / "points.parquet")
    for run, verdict in zip(frame["run"], frame["verdict"], strict=True):
        if verdict != "valid":
            raise UserError(f"{directory / run}: causal order is {verdict}")
    return frame


def _run(
    sweep: Sweep, todo: list[str], runs: Path, master: str, progress: Progress
) -> Generator[Outcome]:
    real_time = [point for point in todo if sweep.points[point].engine == "mininet"]
    for point in real_time:
        yield point, run_point(sweep.within, point, sweep.points[point], runs, progress)
    tasks = [point for point in todo if point not in real_time]
    if tasks:
        with session(master, small=True) as spark:
            tasks.sort(key=lambda point: cost(sweep.points[point]), reverse=True)
            yield from run_tasks(spark.sparkContext, sweep, tasks, runs)


def run_tasks(
    context: SparkContext, sweep: Sweep, points: list[str], runs: Path
) -> Iterator[Outcome]:
    """Run points as jobs in this order; their outcomes as they end."""
    threads = min(len(points), 2 * context.defaultParallelism)  # one job runs, the next waits
    pool = ThreadPoolExecutor(threads)
    try:
        jobs = {pool.submit(_job, context, sweep, point, runs): point for point in points}
        for job in as_completed(jobs):
            yield jobs[job], job.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelAllJobs()


def _job(context: SparkContext, sweep: Sweep, point: str, runs: Path) -> str | None:
    from py4j.protocol import Py4JError

    within, experiment, command = sweep.within, sweep.points[point], sys.argv[1:]

    def task(_: int) -> str | None:
        sys.argv[1:] = command  # what the manifest says was called, and not Spark's worker
        return run_point(within, point, experiment, runs)

    try:
        (outcome,) = context.parallelize([0], 1).map(task).collect()
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
    write_table(points, directory / "points.parquet")
    write_table(trends, directory / "trends.parquet")
    return Swept(directory, points, trends, failed)
