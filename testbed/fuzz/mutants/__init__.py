"""Mutants of an experiment of a daisy: a few changes, so that messages and faults meet as they did not.

Most mistakes show only if two or three things happen within a heartbeat: a message is answered while a
view is installed, a process leaves while another is admitted. When such a moment comes cannot be
drawn, but the log of a run tells it, and a run that differs only from then on comes to it again. And an
experiment that once went wrong has such moments: others are near (``testbed.fuzz.corpus``). So a mutant
is its parent with a few changes, most of them around one time:

- ``faults``: one begins or ends at another time, strikes another process, stops it instead of cutting
  it off, happens to two, or again, or not at all;
- ``words`` and ``talk``: a message or an answer more or less, to others or at another time; or few
  processes send and answer around some times, also to those that faults strike;
- ``crossing``: groups, heartbeats, faults or messages of another scene; other groups, another seed.

A mutant may be beyond what its protocol promises; who tries it must see to that.
"""

import random
from collections.abc import Callable, Sequence

from testbed.fuzz.elements import Document, nodes_of
from testbed.fuzz.mutants.crossing import (
    faults_of,
    links_of,
    messages_of,
    regroup,
    reseed,
    resize,
    shape_of,
    times_of,
)
from testbed.fuzz.mutants.faults import (
    blur,
    divert,
    drop,
    echo,
    move,
    repeat,
    reshape,
    squeeze,
    stretch,
    strike,
)
from testbed.fuzz.mutants.scope import Moment, Scope, moments
from testbed.fuzz.mutants.talk import talk
from testbed.fuzz.mutants.words import retell, say, unsay

__all__ = ["Moment", "moments", "mutant"]

CHANGES: tuple[Callable[[Scope], Document], ...] = (
    *[strike] * 2, *[move] * 4, *[stretch] * 2, reshape, *[divert] * 2, repeat, *[echo] * 4,
    *[squeeze] * 3, drop, blur, *[say] * 4, unsay, *[retell] * 4, *[reseed] * 3, *[regroup] * 2, resize,
)  # fmt: skip
CROSSINGS: tuple[Callable[[Scope, Document], Document], ...] = (
    *[shape_of] * 3, times_of, links_of, *[faults_of] * 2, *[messages_of] * 2,
)  # fmt: skip
MANY = (1, 2, 2, 3, 3, 4, 5)  # changes
CROSSED = 0.25  # of them take something from another scene
FOCUSED, TALKED = 0.7, 0.7  # of all mutants


def mutant(
    parent: Document, shown: Sequence[Moment], scenes: Sequence[Document], rng: random.Random
) -> Document:
    """A mutant of an experiment, given the moments that its run has shown, if it was run."""

    def scope(document: Document) -> Scope:
        seen = [moment for moment in shown if moment.node < nodes_of(document)]
        return Scope(document, seen, focus, rng)

    document, focus = parent, None
    if rng.random() < FOCUSED:
        focus = scope(parent).anchor()
    for _ in range(rng.choice(MANY)):
        if scenes and rng.random() < CROSSED:
            document = rng.choice(CROSSINGS)(scope(document), rng.choice(scenes))
        else:
            document = rng.choice(CHANGES)(scope(document))
    return talk(scope(document)) if rng.random() < TALKED else document
