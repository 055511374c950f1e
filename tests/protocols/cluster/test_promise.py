"""What the paper promises about coordinators, and nothing else: the two invariants of section 4.2.

(1) A process that has not failed, and does not leave, stays a coordinator as long as at least k+1 of
its 2k+1 closest predecessors have not failed either. (2) Failed processes are excluded in the end, and
their tickets can be used again. The judge knows which processes were made to fail and who owned
tickets, not how the protocol works.
"""

import random

import pytest
from typing_extensions import override

from testbed.protocols.cluster.tickets import Granted, Leases, LeaseSettings, Revoked
from tests.protocols.cluster.ring import Holders
from tests.protocols.cluster.storms import ROUND_MS as ROUND
from tests.world import MS

N = 15  # coordinators, each with one ticket; the predecessor of ticket i has ticket i+1


class Promised(Holders):
    """Coordinators that must not lose their tickets, unless they fail."""

    failed: frozenset[int] = frozenset()

    @override
    def told(self, p: int, effect: Granted | Revoked) -> None:
        super().told(p, effect)
        if isinstance(effect, Revoked):
            assert p in self.failed, f"{p} has lost its ticket, but only {set(self.failed)} failed"


def promises(failed: frozenset[int], p: int, k: int) -> bool:
    """Whether the paper promises that a process stays a coordinator."""
    predecessors = {(p + d) % N for d in range(1, 2 * k + 2)}
    return p not in failed and len(predecessors & failed) <= k


def worst(k: int, rng: random.Random) -> frozenset[int]:
    """Processes whose failure is within the promise to all others; one more would not be."""
    failed: frozenset[int] = frozenset()
    for p in rng.sample(range(N), N):
        more = failed | {p}
        if all(promises(more, q, k) for q in range(N) if q not in more):
            failed = more
    return failed


def ring_of(k: int, seed: int = 0) -> Promised:
    rules = LeaseSettings(k, ROUND * MS, ROUND * MS // 10)
    founders = {ticket: ticket for ticket in range(N)}
    ring = Promised(lambda place: Leases(place, N, founders, rules), N, seed)
    ring.run(2 * ROUND)
    return ring


@pytest.mark.parametrize("kind", ["crash", "pause", "cut"])
@pytest.mark.parametrize("k", [1, 2])
def test_who_has_k_failed_predecessors_at_most_stays_and_the_rest_can_be_used_again(
    kind: str, k: int
) -> None:
    for seed in range(3):
        rng, ring = random.Random(f"{kind} {k} {seed}"), ring_of(k, seed)
        ring.run(rng.uniform(0, 2) * ROUND)
        ring.failed = worst(k, rng)
        if kind == "cut":
            ring.part(*([p] for p in ring.failed))
        else:
            for p in ring.failed:
                (ring.crash if kind == "crash" else ring.pause)(p)
        ring.run(12 * ROUND)
        assert set(range(N)) - ring.failed <= set(ring.members())
        assert ring.complete()


def test_the_failures_are_as_bad_as_the_promise_allows_and_worse_ones_are_noticed() -> None:
    drawn = [worst(2, random.Random(seed)) for seed in range(20)]
    assert max(map(len, drawn)) >= 6
    for failed in drawn:
        assert any(len({(p + d) % N for d in range(1, 6)} & failed) == 2 for p in range(N))
    ring = ring_of(2)
    for p in (1, 3, 4):
        ring.crash(p)
    with pytest.raises(AssertionError, match="0 has lost its ticket"):
        ring.run(5 * ROUND)
