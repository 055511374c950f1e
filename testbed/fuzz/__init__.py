"""Deterministic fault testing: random experiments from seeds, and the smallest that goes wrong.

``profiles`` draw experiments from a seed, the ``corpus`` has some that once went wrong, and ``mutants``
change one by what its run has shown; a ``campaign`` is all that is tried of a seed. ``trial`` simulates
and judges an experiment, ``shrink`` reduces one that went wrong to a small one. The result is an
experiment file, which ``testbed run`` repeats exactly. ``coverage`` says how much of a protocol's table
of states was reached; the seeds of a protocol that has one are tried in rounds, the later of which are
aimed at what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import tomli_w

from testbed.fuzz.campaign import experiments, tried
from testbed.fuzz.coverage import Coverage
from testbed.fuzz.profiles import Origin, draw
from testbed.fuzz.shrink import TRIALS, Shrinker
from testbed.fuzz.trial import COSTLY, Example, Trial, attempt
from testbed.plugins import find_protocol
from testbed.plugins.source import source_of
from testbed.protocols import Transition

__all__ = [
    "Batch",
    "Example",
    "Origin",
    "Tally",
    "Trial",
    "attempt",
    "batches",
    "draw",
    "experiments",
    "rounds",
    "shrunk",
    "try_batch",
    "write_example",
]

SEEDS_PER_BATCH = 20
ROUNDS = 4


class Batch(NamedTuple):
    """Some seeds of one protocol, by its ``reference``, to be tried by one worker."""

    protocol: str
    origins: tuple[Origin, ...]


@dataclass
class Tally:
    """The outcome of the seeds of one protocol."""

    protocol: str
    seeds: int = 0
    runs: int = 0  # of the drawn experiments, storms and mutants
    messages: int = 0
    deliveries: int = 0
    faults: int = 0
    wrong: dict[Origin, str] = field(default_factory=dict)  # the kind of violation
    coverage: Coverage = field(default_factory=Coverage)

    def add(self, other: Tally) -> None:
        """Add the outcome of other seeds."""
        self.seeds += other.seeds
        self.runs += other.runs
        self.messages += other.messages
        self.deliveries += other.deliveries
        self.faults += other.faults
        self.wrong.update(other.wrong)
        self.coverage.update(other.coverage)

    @property
    def hopeless(self) -> bool:
        """Whether to try more seeds would take long and tell nothing new."""
        return not COSTLY.isdisjoint(self.wrong.values())

    @property
    def name(self) -> str:
        """What the protocol calls itself."""
        return find_protocol(self.protocol).name

    @property
    def table(self) -> tuple[Transition, ...]:
        """The protocol's table of states."""
        return find_protocol(self.protocol).transitions

    @property
    def first_wrong(self) -> Origin:
        """Where the first violation came from."""
        return min(self.wrong, key=lambda origin: origin.seed)


def rounds(protocols: Iterable[str], seeds: range) -> list[range]:
    """The seeds in the order in which they are tried; in one go if no protocol has a table."""
    several = any(find_protocol(name).transitions for name in protocols)
    size = max(SEEDS_PER_BATCH, -(-len(seeds) // ROUNDS)) if several else len(seeds)
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def batches(tallies: Iterable[Tally], seeds: range, large: bool = False) -> Iterator[Batch]:
    """These seeds of all protocols, in batches; every other one is aimed at what is not reached."""
    for tally in tallies:
        targets = cycle([None, *tally.coverage.targets(tally.table)])
        origins = [Origin(seed, large, next(targets)) for seed in seeds]
        for start in range(0, len(origins), SEEDS_PER_BATCH):
            yield Batch(tally.protocol, tuple(origins[start : start + SEEDS_PER_BATCH]))


def try_batch(batch: Batch) -> Tally:
    """Draw, run and judge the experiments of some seeds."""
    tally = Tally(batch.protocol)
    for origin in batch.origins:
        tally.seeds += 1
        for _, trial in experiments(find_protocol(batch.protocol), origin):
            tally.runs += 1
            tally.messages += trial.messages
            tally.deliveries += trial.deliveries
            tally.faults += trial.faults
            tally.coverage.update(trial.reached)
            if trial.wrong is not None:
                tally.wrong[origin] = trial.wrong
        if tally.hopeless:
            break
    return tally


def shrunk(protocol: str, origin: Origin, trials: int = TRIALS) -> Example:
    """The smallest experiment found that goes wrong like that of this origin."""
    for example in experiments(find_protocol(protocol), origin):
        document, trial = example
        if trial.wrong is not None:
            smallest = Shrinker(document, trial.wrong, trials).shrink()
            return example if smallest == document else tried(smallest)
    raise ValueError(f"seed {origin.seed} of {protocol} does not go wrong")


def write_example(example: Example, directory: Path) -> Path:
    """Write an experiment file that begins with a comment on what goes wrong.

    A protocol in a file of its own is kept beside it, as it is now.
    """
    directory.mkdir(parents=True, exist_ok=True)
    document, protocol = example.document, dict(example.document["protocol"])
    if source := source_of(find_protocol(protocol["name"])):
        kept = directory / f"{source.file.stem}-{source.sha256[:12]}.py"
        kept.write_text(source.text, encoding="utf-8")
        protocol["name"] = f"{kept.name}:{source.cls}"
    path = directory / f"{document['name'].removeprefix('fuzz-')}.toml"
    text = tomli_w.dumps({**document, "protocol": protocol})
    path.write_text(f"# {example.trial.sentence}\n{text}", encoding="utf-8")
    return path
