"""Deterministic fault testing: random experiments from seeds, and the smallest that goes wrong.

``profiles`` draw an experiment from a seed, ``trial`` simulates and judges it, ``shrink`` reduces one
that went wrong to a small one. The result is an experiment file, which ``testbed run`` repeats exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import tomli_w

from testbed.fuzz.elements import Document
from testbed.fuzz.profiles import draw
from testbed.fuzz.shrink import Shrinker
from testbed.fuzz.trial import Trial, attempt
from testbed.protocols import PROTOCOLS, Protocol
from testbed.protocols.broken import BROKEN

__all__ = [
    "Batch",
    "Example",
    "Tally",
    "Trial",
    "attempt",
    "batches",
    "draw",
    "shrunk",
    "try_batch",
    "write_example",
]

SEEDS_PER_BATCH = 20


class Batch(NamedTuple):
    """Some seeds of one protocol, to be tried by one worker."""

    protocol: str
    seeds: range


@dataclass
class Tally:
    """The outcome of the seeds of one protocol."""

    protocol: str
    seeds: int = 0
    messages: int = 0
    deliveries: int = 0
    faults: int = 0
    wrong: dict[int, str] = field(default_factory=dict)  # by seed: the kind of violation

    def add(self, other: Tally) -> None:
        """Add the outcome of other seeds."""
        self.seeds += other.seeds
        self.messages += other.messages
        self.deliveries += other.deliveries
        self.faults += other.faults
        self.wrong.update(other.wrong)


class Example(NamedTuple):
    """An experiment that goes wrong, with its outcome."""

    document: Document
    trial: Trial


def batches(protocols: Iterable[str], seeds: range) -> Iterator[Batch]:
    """All seeds of these protocols, in batches."""
    for name in protocols:
        for start in range(0, len(seeds), SEEDS_PER_BATCH):
            yield Batch(name, seeds[start : start + SEEDS_PER_BATCH])


def try_batch(batch: Batch) -> Tally:
    """Draw, run and judge the experiments of some seeds."""
    tally = Tally(batch.protocol)
    for seed in batch.seeds:
        trial = _tried(draw(_protocol(batch.protocol), seed))
        tally.seeds += 1
        tally.messages += trial.messages
        tally.deliveries += trial.deliveries
        tally.faults += trial.faults
        if trial.wrong is not None:
            tally.wrong[seed] = trial.wrong
    return tally


def shrunk(protocol: str, seed: int) -> Example:
    """The smallest experiment found that goes wrong like that of this seed."""
    document = draw(_protocol(protocol), seed)
    wrong = _tried(document).wrong
    if wrong is None:
        raise ValueError(f"seed {seed} of {protocol} does not go wrong")
    smallest = Shrinker(document, wrong).shrink()
    return Example(smallest, _tried(smallest))


def write_example(example: Example, directory: Path) -> Path:
    """Write an experiment file that begins with a comment on what goes wrong."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{example.document['name'].removeprefix('fuzz-')}.toml"
    found = f"# {example.trial.sentence}\n"
    path.write_text(found + tomli_w.dumps(example.document), encoding="utf-8")
    return path


def _protocol(name: str) -> type[Protocol]:
    return (PROTOCOLS | BROKEN)[name]


def _tried(document: Document) -> Trial:
    trial = attempt(document)
    if trial is None:
        raise AssertionError(
            f"{document['name']}: no correct protocol promises to survive what was drawn"
        )
    return trial
