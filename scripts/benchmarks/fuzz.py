"""How soon ``testbed fuzz`` finds each mistake of the bank, and how small its example becomes.

The bank is ``protocols/broken``: mistakes that were real, or are often made. A search is worth as much
as the mistakes that it finds again: each must be found within 300 seeds, and be shrunk to at most 6
messages and 8 processes.
"""

import sys
import time
from typing import NamedTuple

from scripts import parser
from testbed.fuzz import Batch, Example, Tally, batches, rounds, shrunk, try_batch
from testbed.protocols.broken import BROKEN

MOST_SEEDS, MOST_MESSAGES, MOST_PROCESSES = 300, 6, 8


class Found(NamedTuple):
    """The first seed that shows a mistake, the runs until then, and the smallest example's size."""

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


def find(protocol: str, seeds: int) -> Found | None:
    """Try seed after seed, as ``testbed fuzz`` does, until one goes wrong."""
    total = Tally(protocol)
    for part in rounds([protocol], range(1, seeds + 1)):
        for batch in list(batches([total], part)):
            for origin in batch.origins:
                total.add(try_batch(Batch(protocol, (origin,))))
                if total.wrong:
                    return measured(origin.seed, total.runs, shrunk(protocol, origin))
    return None


def measured(seed: int, runs: int, example: Example) -> Found:
    """The size of an example."""
    document, trial = example
    topology = document["topology"]
    processes = topology.get("nodes") or topology["rows"] * topology["columns"]
    messages = len(document["workload"]["send"])
    return Found(seed, runs, trial.wrong or "", messages, processes, len(document["fault"]))


def main() -> None:
    """Find each mistake, and end with status 1 if one was not found or is too large."""
    command = parser("bench fuzz", __doc__)
    command.add_argument("--protocols", nargs="+", choices=BROKEN, default=[*BROKEN])
    command.add_argument("--seeds", type=int, default=MOST_SEEDS, help="at most")
    options = command.parse_args()
    print(
        f"{'protocol':<22}{'seed':>6}{'runs':>7}{'messages':>10}{'processes':>11}{'faults':>8}",
        end="",
    )
    print(f"{'seconds':>9}  violation")
    failed = []
    for name in options.protocols:
        start = time.process_time()
        found = find(name, options.seeds)
        seconds = time.process_time() - start
        if found is None:
            print(f"{name:<22}  not found within {options.seeds} seeds {seconds:>8.1f}", flush=True)
        else:
            print(
                f"{name:<22}{found.seed:>6}{found.runs:>7}{found.messages:>10}{found.processes:>11}",
                end="",
            )
            print(f"{found.faults:>8}{seconds:>9.1f}  {found.kind}", flush=True)
        if found is None or not found.small:
            failed.append(name)
    if failed:
        print(f"not found, or too large: {', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
