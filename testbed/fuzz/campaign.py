"""The experiments of one seed: one that is drawn, and for some protocols storms, and mutants of it.

A mutant is made of the last run that has shown something new: three things in a row that no process
did in the runs before. All of it follows from the origin, so that a seed repeats what it has found.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

from testbed.experiment.seeds import stream
from testbed.fuzz.elements import SMALL, Document
from testbed.fuzz.mutants import Mutation
from testbed.fuzz.profiles import Origin, profile_of
from testbed.fuzz.shrink import nodes_of
from testbed.fuzz.trial import Trial, attempt
from testbed.protocols import Protocol

TRIES = 10  # to make a mutant that is within what its protocol promises


class Example(NamedTuple):
    """An experiment with its outcome."""

    document: Document
    trial: Trial


def experiments(protocol: type[Protocol], origin: Origin) -> Iterator[Example]:
    """The experiments of an origin, up to the first that goes wrong."""
    profile = profile_of(protocol)
    drawn = tried(profile.draw(origin))
    yield drawn
    if drawn.trial.wrong is None and nodes_of(drawn.document) <= SMALL:
        for number in range(1, profile.storms + 1):
            yield (storm := tried(profile.storm(origin.seed, number)))
            if storm.trial.wrong is not None:
                return
        rng = stream(origin.seed, "mutants", drawn.document["name"])
        yield from _mutants(drawn, profile.mutants, rng)


def tried(document: Document) -> Example:
    """An experiment that is within what its protocol promises, with its outcome."""
    trial = attempt(document)
    if trial is None:
        raise AssertionError(
            f"{document['name']}: no correct protocol promises to survive what was drawn"
        )
    return Example(document, trial)


def _mutants(drawn: Example, most: int, rng: random.Random) -> Iterator[Example]:
    parent, shown = drawn, set(drawn.trial.sequences)
    for number in range(1, most + 1):
        name = f"{drawn.document['name']}-mutant-{number}"
        mutant = _mutant(parent, name, rng)
        if mutant is None:
            continue
        yield mutant
        if mutant.trial.wrong is not None:
            return
        if not mutant.trial.sequences <= shown:
            parent = mutant
            shown |= mutant.trial.sequences


def _mutant(parent: Example, name: str, rng: random.Random) -> Example | None:
    mutation = Mutation(nodes_of(parent.document), parent.trial.moments, rng)
    for _ in range(TRIES):
        document = mutation.of({**parent.document, "name": name})
        if (trial := attempt(document)) is not None:
            return Example(document, trial)
    return None
