"""Spark runs the steps of a digest: one job for any number of runs, which reads and shuffles twice."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import RDD, SparkContext

from testbed.digest.links import link_step
from testbed.digest.messages import message_step
from testbed.digest.nodes import node_step
from testbed.digest.packets import datagram_step, simulated_step
from testbed.digest.steps import TOTALS, Facts, Key, Piece, Step, Tables
from testbed.digest.timeline import time_step
from testbed.progress import Progress

TASK_BYTES = 16 << 20  # to read; starting a task takes time, so small parts share one
POLL_S = 0.2

Numbered = tuple[Key, tuple[int, str, pa.Table]]  # as Spark moves a piece, by its key


class Part(Protocol):
    """A part of a run's files."""

    @property
    def run(self) -> int:
        """Whose."""

    @property
    def size(self) -> int:
        """In bytes."""

    def pieces(self, facts: Facts) -> Iterator[Piece]:
        """What it says, for the first steps."""


def _totals(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """What is for the driver goes through all steps."""
    return (facts.total(role, rows) for role, rows in tables.items())


FIRST: dict[str, Step] = {
    "node": node_step,
    "datagram": datagram_step,
    "simulated": simulated_step,
    TOTALS: _totals,
}
LAST: dict[str, Step] = {
    "message": message_step,
    "time": time_step,
    "link": link_step,
    TOTALS: _totals,
}


def run_steps(
    context: SparkContext, parts: Sequence[Part], facts: Sequence[Facts], progress: Progress
) -> dict[int, Tables]:
    """Do all steps; what each run's steps say to the driver, by role."""
    tasks = _tasks(parts)
    pieces = context.parallelize(tasks, len(tasks)).flatMap(partial(_read, facts))
    for steps in (FIRST, LAST):
        keys = [
            Key(each.run, step, bucket)
            for each in facts
            for step in steps
            for bucket in range(each.buckets[step])
        ]
        places = {key: place for place, key in enumerate(keys)}
        shuffled = pieces.partitionBy(len(keys), places.__getitem__)
        pieces = shuffled.mapPartitions(partial(_perform, facts, steps, places))
    found: dict[int, Tables] = {each.run: {} for each in facts}
    found |= {key.run: tables for key, tables in _gathered(_collect(context, pieces, progress))}
    return found


def last_moments(
    context: SparkContext, parts: Sequence[Part], facts: Sequence[Facts]
) -> dict[int, int]:
    """The time of each run's last event or packet."""
    tasks = _tasks(parts)
    moments = context.parallelize(tasks, len(tasks)).flatMap(partial(_moments, facts)).collect()
    last = {each.run: 0 for each in facts}
    for run, moment in moments:
        last[run] = max(last[run], moment)
    return last


def _tasks(parts: Sequence[Part]) -> list[list[tuple[int, Part]]]:
    """The parts, numbered, in groups that a task reads."""
    tasks: list[list[tuple[int, Part]]] = [[]]
    room = TASK_BYTES
    for number, part in enumerate(parts):
        if tasks[-1] and room < part.size:
            tasks.append([])
            room = TASK_BYTES
        tasks[-1].append((number, part))
        room -= part.size
    return tasks


def _read(facts: Sequence[Facts], task: Sequence[tuple[int, Part]]) -> Iterator[Numbered]:
    for number, part in task:
        for piece in part.pieces(facts[part.run]):
            yield piece.key, (number, piece.role, piece.rows)


def _moments(facts: Sequence[Facts], task: Sequence[tuple[int, Part]]) -> Iterator[tuple[int, int]]:
    for key, (_, role, rows) in _read(facts, task):
        if role in ("events", "packets"):
            at = rows["arrived" if "arrived" in rows.column_names else "at"]
            yield key.run, pc.max(at).as_py()


def _perform(
    facts: Sequence[Facts],
    steps: Mapping[str, Step],
    places: Mapping[Key, int],
    pieces: Iterable[Numbered],
) -> Iterator[Numbered]:
    for key, tables in _gathered(pieces):
        for piece in steps[key.step](facts[key.run], key.bucket, tables):
            yield piece.key, (places[key], piece.role, piece.rows)


def _gathered(pieces: Iterable[Numbered]) -> Iterator[tuple[Key, Tables]]:
    """The tables of each bucket, by role, joined in the order of their numbers."""
    found: dict[Key, list[tuple[int, str, pa.Table]]] = {}
    for key, piece in pieces:
        found.setdefault(key, []).append(piece)
    for key in sorted(found):
        roles: dict[str, list[pa.Table]] = {}
        for _, role, rows in sorted(found.pop(key), key=lambda piece: piece[0]):
            roles.setdefault(role, []).append(rows)
        yield key, {role: pa.concat_tables(rows) for role, rows in roles.items()}


def _collect(context: SparkContext, pieces: "RDD[Numbered]", progress: Progress) -> list[Numbered]:
    """Run the job, and tell how many of its tasks are done."""
    tracker = context.statusTracker()
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(pieces.collect)
        try:
            while not job.done():
                time.sleep(POLL_S)
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                for stage in filter(None, stages):
                    progress("digest", stage.numCompletedTasks, stage.numTasks)
        except BaseException:
            context.cancelAllJobs()
            raise
    return job.result()
