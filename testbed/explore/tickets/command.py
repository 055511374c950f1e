"""Explore everything that can happen to three processes with three tickets on leases.

Without limits the search goes through several stages, which takes some minutes.
"""

import argparse
import sys
import time

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from testbed.explore.tickets.search import Search, summarised
from testbed.explore.tickets.system import System, Used, ViolationError
from testbed.protocols.broken.leases import BROKEN_LEASES
from testbed.protocols.cluster.tickets import Leases

LEASE_CLASSES = {kind.__name__: kind for kind in (Leases, *BROKEN_LEASES)}
ORDERS = ((0, 1, 2), (0, 2, 1))  # the others are rotations of these, and the ring looks the same
STAGES = (
    (1, Used(1, 1, 1)),
    (1, Used(2, 0, 0)),
    (2, Used(1, 1, 0)),
    (4, Used(1, 0, 1)),
    (4, Used(1, 1, 0)),
)


def explore(
    kind: type[Leases], limits: Used, parts: int, order: tuple[int, ...], progress: Progress
) -> tuple[Search, str | None]:
    """Search with a progress bar; the search, and the violation that it found, if any."""
    search = Search(System(kind, limits, parts, order))
    task = progress.add_task("", total=None)

    def tell() -> None:
        left = sum(map(len, search.queues))
        progress.update(task, description=f"{len(search.found):,} states, {left:,} to visit")

    try:
        search.run(tell=tell)
    except ViolationError as violation:
        return search, f"{violation}, after: {summarised([*search.trace(), '…'])}"
    finally:
        progress.remove_task(task)
    return search, None


def described(kind: type[Leases], limits: Used, parts: int, order: tuple[int, ...]) -> str:
    """The search in words."""
    what = ", ".join(f"{n} {name}" for name, n in limits._asdict().items())
    return f"{kind.__name__}, ticks per round: {parts}, timers in order {order}, up to {what}"


def recovered(search: Search, parts: int) -> str:
    """The longest time from any state until every ticket is owned or assignable again."""
    times = [search.recovery(state) for state, _, _ in search.found]
    longest = max((time for time in times if time is not None), default=0)
    never = times.count(None)
    return f"recovers in up to {longest / parts:g} rounds, from {never:,} states never"


def main() -> int:
    """Run the searches, and print the result of each."""
    parser = argparse.ArgumentParser(prog="scripts/explore-tickets", description=__doc__)
    parser.add_argument(
        "--faults",
        type=int,
        help="limit of link cuts, pauses, crashes and late messages (default: several stages)",
    )
    parser.add_argument("--actions", type=int, default=0, help="limit of joins and leaves")
    parser.add_argument("--slips", type=int, default=0, help="limit of ticks that clocks lose")
    parser.add_argument("--parts", type=int, default=4, help="ticks per round")
    parser.add_argument(
        "--kind",
        choices=LEASE_CLASSES,
        default="Leases",
        help="the protocol, or a broken version of it",
    )
    parser.add_argument("--recovery", action="store_true", help="also report how long repairs take")
    options = parser.parse_args()
    limits = Used(options.faults or 0, options.actions, options.slips)
    stages = STAGES if options.faults is None else ((options.parts, limits),)
    kind, violations = LEASE_CLASSES[options.kind], 0
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        for parts, bounds in stages:
            for order in ORDERS:
                begun = time.process_time()
                search, violation = explore(kind, bounds, parts, order, progress)
                result = violation or f"all {len(search.found):,} states are safe"
                violations += violation is not None
                seconds = time.process_time() - begun
                progress.console.print(f"{described(kind, bounds, parts, order)}: {result}")
                progress.console.print(
                    f"  {len(search.found):,} states, {search.transitions:,} transitions, longest "
                    f"run {search.depth()}, {seconds:.0f} s of CPU time"
                )
                if options.recovery and violation is None:
                    progress.console.print(f"  {recovered(search, parts)}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
