"""How soon ``testbed fuzz`` finds each mistake of the bank, and how small its example becomes.

The bank is ``protocols/broken``: mistakes that were real, or are often made. A search is worth as much
as the mistakes that it finds again: each must be found within 300 seeds, and be shrunk to at most 6
messages and 8 processes. A daisy's experiment counts only if the right daisy passes it: else it shows
another mistake, which the daisy itself has, and which is told. With several ranges of seeds, luck
counts for less; so that a range may begin anywhere, no seed is aimed at states that others have not
reached.

``testbed fuzz`` varies scenes in which a daisy once went wrong (``testbed/fuzz/corpus``), so that a
mistake that is made again is found by its own scene. Whether it would have been found by what was known
of the others is another question: with ``--held-out``, every scene that goes wrong with a mistake as it
stands is left out while that mistake is searched for; the table says how many these are.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scripts import parser
from testbed.fuzz import Example, Origin, attempt, experiments
from testbed.fuzz.corpus import scenes
from testbed.fuzz.elements import Document, nodes_of
from testbed.fuzz.shrink import Shrinker
from testbed.protocols.broken import BROKEN
from testbed.protocols.daisy import Daisy

MOST_SEEDS, MOST_MESSAGES, MOST_PROCESSES = 300, 6, 8
HEADER = (
    "protocol                first  found   runs  messages  processes  faults  scenes left out  "
    "seconds  violation"
)


class Found(NamedTuple):
    """The seed that shows a mistake, the runs until then, and the smallest example's size."""

    seed: int
    runs: int
    kind: str
    messages: int
    processes: int
    faults: int

    @property
    def small(self) -> bool:
        """Whether a person can follow it."""
        return self.messages <= MOST_MESSAGES and self.processes <= MOST_PROCESSES


def is_its_own(example: Example) -> bool:
    """Whether the mistake is what makes an experiment go wrong: the right protocol passes it."""
    protocol = example.document["protocol"]
    if not issubclass(BROKEN[protocol["name"]], Daisy):
        return True  # the right one may not promise to survive the same faults
    document = {**example.document, "protocol": {**protocol, "name": Daisy.name}}
    right = attempt(document, beyond=True)
    return right is not None and right.wrong is None


def others_scenes(protocol: str) -> dict[str, Document]:
    """The scenes of the corpus that do not go wrong with a mistake as they stand."""
    if not issubclass(BROKEN[protocol], Daisy):
        return {}

    def goes_wrong(scene: Document) -> bool:
        document = {**scene, "protocol": {**scene["protocol"], "name": protocol}}
        trial = attempt(document, beyond=True)
        return trial is not None and trial.wrong is not None

    return {name: scene for name, scene in scenes().items() if not goes_wrong(scene)}


def find(protocol: str, seeds: range, corpus: Sequence[Document]) -> Found | None:
    """Try seed after seed until one goes wrong on account of the mistake, and shrink what it shows."""
    for runs, (seed, example) in enumerate(tries(protocol, seeds, corpus), 1):
        document, trial = example
        if trial.wrong is None:
            continue
        if not is_its_own(example):
            print(f"{document['name']}: the right daisy goes wrong, too", flush=True)
        else:
            small = Shrinker(document, trial.wrong).shrink()
            messages, faults = len(small["workload"]["send"]), len(small["fault"])
            return Found(seed, runs, trial.wrong, messages, nodes_of(small), faults)
    return None


def tries(protocol: str, seeds: range, corpus: Sequence[Document]) -> Iterator[tuple[int, Example]]:
    """The experiments of these seeds, each with its outcome."""
    for seed in seeds:
        for example in experiments(BROKEN[protocol], Origin(seed), corpus):
            yield seed, example


def row(
    name: str, first: int, found: Found | None, left_out: int, seconds: float, seeds: int
) -> str:
    """A line of the table."""
    if found is None:
        nothing = f"not found within {seeds} seeds"
        return f"{name:<22}{first:>7}  {nothing:<40}{left_out:>17}{seconds:>9.1f}"
    return (
        f"{name:<22}{first:>7}{found.seed:>7}{found.runs:>7}{found.messages:>10}"
        f"{found.processes:>11}{found.faults:>8}{left_out:>17}{seconds:>9.1f}  {found.kind}"
    )


def main() -> None:
    """Find each mistake, and end with status 1 if one was not found or is too large."""
    command = parser("bench fuzz", __doc__)
    command.add_argument("--protocols", nargs="+", choices=BROKEN, default=[*BROKEN])
    command.add_argument(
        "--held-out",
        action="store_true",
        help="without the scenes that a mistake fails as they are",
    )
    command.add_argument("--seeds", type=int, default=MOST_SEEDS, help="at most, of each range")
    command.add_argument(
        "--first-seeds", type=int, nargs="+", default=[1], help="of each range (default: 1)"
    )
    options = command.parse_args()
    print(HEADER)
    failed = []
    for name in options.protocols:
        corpus = others_scenes(name) if options.held_out else scenes()
        left_out = len(scenes()) - len(corpus) if corpus else 0
        for first in options.first_seeds:
            start = time.process_time()
            found = find(name, range(first, first + options.seeds), [*corpus.values()])
            seconds = time.process_time() - start
            print(row(name, first, found, left_out, seconds, options.seeds), flush=True)
            if found is None or not found.small:
                failed.append(f"{name} from seed {first}")
    if failed:
        print(f"not found, or too large: {', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
