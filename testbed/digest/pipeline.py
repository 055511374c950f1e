"""Spark runs the steps of a digest: one job that reads any number of runs, and one for each round."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import pyarrow.compute as pc
from pyspark import RDD, SparkContext

from testbed.digest.delays import delay_step
from testbed.digest.exchange import Stored, load, store
from testbed.digest.links import link_step
from testbed.digest.messages import message_step
from testbed.digest.nodes import node_step
from testbed.digest.packets import datagram_step, simulated_step
from testbed.digest.steps import TOTALS, Facts, Key, Piece, Step, Tables
from testbed.digest.timeline import time_step
from testbed.progress import Progress

TASK_LEAST, TASK_MOST = 1 << 20, 16 << 20  # starting a task takes time, so small parts share one
TASKS_PER_CORE = 4  # the more, the sooner all cores are done
POLL_S = 0.2

ROUNDS: tuple[Mapping[str, Step], ...] = (
    {"node": node_step, "datagram": datagram_step, "simulated": simulated_step},
    {"message": message_step, "time": time_step, "link": link_step},
    {"delay": delay_step},
)
STEPS = {name: step for steps in ROUNDS for name, step in steps.items()}


class Part(Protocol):
    """A part of a run's files, or of what follows from them."""

    @property
    def run(self) -> int:
        """Whose."""

    @property
    def weight(self) -> int:
        """How long it takes: as reading so many bytes of a capture."""

    def pieces(self, facts: Facts) -> Iterable[Piece]:
        """What it says, for the next steps."""


Task = tuple[Path, Sequence[tuple[int, Part]]]  # its file, and parts by number


@dataclass(frozen=True)
class Bucket:
    """All pieces for one bucket of a step."""

    key: Key
    stored: Sequence[Stored]

    @property
    def run(self) -> int:
        """Whose."""
        return self.key.run

    @property
    def weight(self) -> int:
        """By their size."""
        return sum(piece.size for piece in self.stored)

    def pieces(self, facts: Facts) -> Iterable[Piece]:
        """Perform the step."""
        return STEPS[self.key.step](facts, self.key.bucket, load(self.stored))


def run_steps(
    context: SparkContext, parts: Sequence[Part], facts: Sequence[Facts], progress: Progress
) -> dict[int, Tables]:
    """Do all steps; what each run's steps say to the driver, by role."""
    tables = facts[0].tables
    with TemporaryDirectory(".moving", dir=tables, ignore_cleanup_errors=True) as moving:
        stored = _done(context, parts, facts, Path(moving, "read"), progress)
        for number, steps in enumerate(ROUNDS):
            buckets, stored = _buckets(stored, steps)
            stored += _done(context, buckets, facts, Path(moving, f"round-{number}"), progress)
    totals, _ = _buckets(stored, [TOTALS])
    return {each.run: {} for each in facts} | {each.run: load(each.stored) for each in totals}


def _buckets(stored: Iterable[Stored], steps: Collection[str]) -> tuple[list[Bucket], list[Stored]]:
    """The pieces for some steps, by their keys and in the order of these, and all others."""
    found: dict[Key, list[Stored]] = {}
    others = []
    for piece in stored:
        if piece.key.step in steps:
            found.setdefault(piece.key, []).append(piece)
        else:
            others.append(piece)
    return [Bucket(key, found[key]) for key in sorted(found)], others


def _done(
    context: SparkContext,
    parts: Sequence[Part],
    facts: Sequence[Facts],
    directory: Path,
    progress: Progress,
) -> list[Stored]:
    """A job: the pieces that follow from all these parts."""
    directory.mkdir()
    batches = _batches(parts, context.defaultParallelism)
    tasks = [(directory / f"{number}.arrow", batch) for number, batch in enumerate(batches)]
    found = context.parallelize(tasks, len(tasks)).flatMap(partial(_perform, facts))
    return _collect(context, found, progress) if tasks else []


def last_moments(
    context: SparkContext, parts: Sequence[Part], facts: Sequence[Facts]
) -> dict[int, int]:
    """The time of each run's last event or packet."""
    tasks = _batches(parts, context.defaultParallelism)
    moments = context.parallelize(tasks, len(tasks)).flatMap(partial(_moments, facts)).collect()
    last = {each.run: 0 for each in facts}
    for run, moment in moments:
        last[run] = max(last[run], moment)
    return last


def _batches(parts: Sequence[Part], cores: int) -> list[list[tuple[int, Part]]]:
    """The parts, numbered, in groups for tasks; the largest first."""
    share = sum(part.weight for part in parts) // (cores * TASKS_PER_CORE)
    most = min(max(TASK_LEAST, share), TASK_MOST)
    batches: list[list[tuple[int, Part]]] = []
    room = 0
    for number, part in sorted(enumerate(parts), key=lambda each: -each[1].weight):
        if not batches or room < part.weight:
            batches.append([])
            room = most
        batches[-1].append((number, part))
        room -= part.weight
    return batches


def _perform(facts: Sequence[Facts], task: Task) -> list[Stored]:
    file, parts = task
    pieces = ((number, piece) for number, part in parts for piece in part.pieces(facts[part.run]))
    return store(file, pieces)


def _moments(facts: Sequence[Facts], task: Sequence[tuple[int, Part]]) -> Iterator[tuple[int, int]]:
    for _, part in task:
        for key, role, rows in part.pieces(facts[part.run]):
            if role in ("events", "packets"):
                at = rows["arrived" if "arrived" in rows.column_names else "at"]
                yield key.run, pc.max(at).as_py()


def _collect(context: SparkContext, pieces: "RDD[Stored]", progress: Progress) -> list[Stored]:
    """Run a job, and tell how many of its tasks are done."""
    tracker = context.statusTracker()
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(pieces.collect)
        try:
            while not wait([job], POLL_S).done:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                for stage in filter(None, stages):
                    progress("digest", stage.numCompletedTasks, stage.numTasks)
        except BaseException:
            context.cancelAllJobs()
            raise
    return job.result()
