"""The experiments of one seed: one that is drawn, and for some protocols a scene, storms, and mutants.

A seed tries one scene of the corpus as it stands, by turns, so that a mistake that is made again is
found within as many seeds as there are scenes. There are mutants of the experiment that was drawn, and
of some scenes. Each is made of the last one of its line that has shown something new: three things in a
row that no process did in the runs before. All of it follows from the origin and the corpus, so that a
seed repeats what it has found.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from testbed.experiment.seeds import stream
from testbed.fuzz.corpus import scenes
from testbed.fuzz.elements import SMALL, Document, nodes_of
from testbed.fuzz.mutants import Moment, mutant
from testbed.fuzz.profiles import Origin, Profile, profile_of
from testbed.fuzz.trial import Example, attempt
from testbed.plugins import reference
from testbed.protocols import Protocol

TRIES = 10  # to make a mutant that is within what its protocol promises


def experiments(
    protocol: type[Protocol], origin: Origin, corpus: Sequence[Document] | None = None
) -> Iterator[Example]:
    """The experiments of an origin, up to the first that goes wrong."""
    for example in _experiments(protocol, origin, _all_scenes() if corpus is None else corpus):
        yield example
        if example.trial.wrong is not None:
            return


def _all_scenes() -> list[Document]:
    return [*scenes().values()]


def _experiments(
    protocol: type[Protocol], origin: Origin, corpus: Sequence[Document]
) -> Iterator[Example]:
    profile = profile_of(protocol)
    drawn = tried(profile.draw(origin))
    yield drawn
    if nodes_of(drawn.document) > SMALL:
        return
    name = drawn.document["name"]
    if corpus and profile.scenes:
        yield from _replayed(corpus[origin.seed % len(corpus)], reference(protocol), name)
    for number in range(1, profile.storms + 1):
        yield tried(profile.storm(origin.seed, number))
    line = Line(profile, corpus, stream(origin.seed, "mutants", name), f"{name}-mutant")
    yield from line.of(drawn.document, profile.mutants, drawn)
    for number in range(1, profile.scenes + 1) if corpus else ():
        rng = stream(origin.seed, "scene", name, number)
        scene = rng.choice(corpus)
        document = {**scene, "protocol": {**scene["protocol"], "name": reference(protocol)}}
        line = Line(profile, corpus, rng, f"{name}-scene-{number}")
        yield from line.of(document, profile.variations)


def _replayed(scene: Document, protocol: str, name: str) -> Iterator[Example]:
    """A scene as it stands, also if no correct protocol promises to survive it: the right one did."""
    document = {
        **scene,
        "protocol": {**scene["protocol"], "name": protocol},
        "name": f"{name}-replay",
    }
    if (trial := attempt(document, beyond=True)) is not None:
        yield Example(document, trial)


def tried(document: Document) -> Example:
    """An experiment that is within what its protocol promises, with its outcome."""
    trial = attempt(document)
    if trial is None:
        raise AssertionError(
            f"{document['name']}: no correct protocol promises to survive what was drawn"
        )
    return Example(document, trial)


@dataclass(frozen=True)
class Line:
    """A line of mutants, each of an earlier one that has shown something new."""

    profile: Profile
    corpus: Sequence[Document]
    rng: random.Random
    name: str

    def of(self, parent: Document, most: int, run: Example | None = None) -> Iterator[Example]:
        """At most so many mutants of an experiment, given its run, if it was run."""
        moments = () if run is None else run.trial.moments
        shown = set[tuple[str, ...]]() if run is None else set(run.trial.sequences)
        for number in range(1, most + 1):
            made = self._mutant(parent, moments, number)
            if made is None:
                continue
            yield made
            if not made.trial.sequences <= shown:
                parent, moments = made.document, made.trial.moments
                shown |= made.trial.sequences

    def _mutant(self, parent: Document, shown: Sequence[Moment], number: int) -> Example | None:
        for _ in range(TRIES):
            document = mutant(parent, shown, self.corpus, self.rng)
            document = self.profile.settled({**document, "name": f"{self.name}-{number}"})
            if (trial := attempt(document)) is not None:
                return Example(document, trial)
        return None
