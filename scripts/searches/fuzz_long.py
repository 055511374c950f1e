"""Fuzz protocols with tens of thousands of seeds: by default the daisy and its variants.

It tries what ``testbed fuzz`` tries, mostly small systems and then large ones. The experiment of each
seed that goes wrong is shrunk and written as a file at once, while the others go on.
"""

import time
from argparse import Namespace
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from scripts import parser
from scripts.searches import Memory, bar, search, start
from testbed.commands.fuzz import show_coverage
from testbed.commands.terminal import console, new_table
from testbed.fuzz import Batch, Origin, Tally, batches, rounds, shrunk, try_batch, write_example
from testbed.fuzz.coverage import Coverage, states
from testbed.protocols import PROTOCOLS, Transition
from testbed.protocols.broken import BROKEN

UNDELIVERED = {"loss", "gap", "unrepaired", "endless"}  # other violations are of safety


class Part(NamedTuple):
    """The seeds of one size, and the outcome of those that were tried."""

    large: bool
    tallies: dict[str, Tally]
    cpu_s: Counter[str]

    @property
    def size(self) -> str:
        """How large its systems are."""
        return "large" if self.large else "mostly small"


def try_and_shrink(batch: Batch, directory: Path) -> dict[str, Any]:
    """Try some seeds; whatever one of them does, the others are tried too."""
    begun, total = time.process_time(), Tally(batch.protocol)
    files = []
    for origin in batch.origins:
        try:
            one = try_batch(Batch(batch.protocol, (origin,)))
            total.add(one)
            if one.wrong:
                files.append(str(write_example(shrunk(batch.protocol, origin), directory)))
        except Exception as error:  # a mistake of the search, which is a finding too
            total.wrong[origin] = f"{type(error).__name__}: {error}"
    return {"tally": to_json(total), "files": files, "cpu_s": time.process_time() - begun}


def to_json(tally: Tally) -> dict[str, Any]:
    """A tally in plain data."""
    return vars(tally) | {
        "wrong": [[*origin, kind] for origin, kind in tally.wrong.items()],
        "coverage": [[*row, count] for row, count in tally.coverage.items()],
    }


def from_json(data: dict[str, Any]) -> Tally:
    """The tally that was written like this."""
    wrong = {Origin(*origin): kind for *origin, kind in data["wrong"]}
    coverage = Coverage({Transition(*row): count for *row, count in data["coverage"]})
    return Tally(**data | {"wrong": wrong, "coverage": coverage})


def run_part(part: Part, seeds: range, options: Namespace) -> None:
    """Try all seeds of one size, in rounds, the later of which are aimed at what is missing."""
    memory = Memory(options.runs / "fuzz-long" / "tried.jsonl")
    work = partial(try_and_shrink, directory=options.runs.resolve() / "fuzz-long")
    with bar(f"fuzz, {part.size}", "seeds", len(part.tallies) * len(seeds)) as progress:
        for some in rounds(part.tallies, seeds):
            pieces = {named(b): b for b in batches(part.tallies.values(), some, part.large)}
            for found in search(pieces, work, memory, options.master):
                tally = from_json(found["tally"])
                part.tallies[tally.protocol].add(tally)
                part.cpu_s[tally.protocol] += found["cpu_s"]
                tell(tally, found["files"])
                progress(sum(tally.seeds for tally in part.tallies.values()))


def named(batch: Batch) -> str:
    """All that a batch is drawn from."""
    return " ".join(
        [batch.protocol, *(f"{s}{'L' * large}{aim or ''}" for s, large, aim in batch.origins)]
    )


def tell(tally: Tally, files: list[str]) -> None:
    """Say at once what went wrong."""
    for origin, kind in tally.wrong.items():
        print(f"{tally.protocol}, seed {origin.seed}: {kind}", flush=True)
    for file in files:
        print(f"  repeat: testbed run {file} --no-digest", flush=True)


def show(parts: list[Part]) -> None:
    """One table of all, and what was not reached."""
    out = console(wide=True)
    counts = ("seeds", "runs", "violations", "undelivered", "messages", "deliveries", "faults")
    table = new_table(("protocol", "systems"), (*counts, "states", "transitions", "CPU time (s)"))
    for part in parts:
        for name, tally in part.tallies.items():
            silent = sum(kind in UNDELIVERED for kind in tally.wrong.values())
            numbers = (
                *(tally.seeds, tally.runs, len(tally.wrong) - silent, silent),
                *(tally.messages, tally.deliveries, tally.faults),
            )
            missing = len(tally.coverage.missing(tally.table))
            covered = (
                f"{len(states(tally.coverage))}/{len(states(tally.table))}",
                f"{len(tally.table) - missing}/{len(tally.table)}",
            )
            figures = (f"{number:,}" for number in numbers)
            table.add_row(name, part.size, *figures, *covered, f"{part.cpu_s[name]:,.0f}")
    out.print(table)
    for part in parts:
        for tally in part.tallies.values():
            if tally.coverage.missing(tally.table):
                show_coverage(tally, out)


def main() -> bool:
    """Search; whether something went wrong."""
    command = parser("fuzz-long", __doc__)
    known = [*PROTOCOLS, *BROKEN]
    command.add_argument("--protocol", nargs="+", choices=known, default=["daisy"], metavar="NAME")
    command.add_argument("--seeds", type=int, default=20_000, help="(default: 20,000)")
    command.add_argument("--large", type=int, default=2_000, help="seeds of systems of 9 to 32")
    command.add_argument("--first-seed", type=int, default=1, help="(default: 1)")
    command.add_argument("--master", default="local[*]", help="Spark's (default: local[*])")
    command.add_argument("--runs", type=Path, default=Path("runs"), help="(default: runs)")
    options = command.parse_args()
    parts = []
    for large, seeds in ((False, options.seeds), (True, options.large)):
        if seeds:
            parts.append(Part(large, {name: Tally(name) for name in options.protocol}, Counter()))
            run_part(parts[-1], range(options.first_seed, options.first_seed + seeds), options)
    show(parts)
    return any(tally.wrong for part in parts for tally in part.tallies.values())


if __name__ == "__main__":
    start(main)
