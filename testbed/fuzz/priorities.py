"""Schedules by priorities that change at a few random points, beside random delays.

Burckhardt, Kothari, Musuvathi & Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of
Finding Bugs", ASPLOS 2010 (PCT). Most bugs need few events in a certain order. A scheduler that always
lets the runnable thread of the highest priority run, draws the priorities at the start, and lowers that
of the running thread at *d* - 1 random steps finds a bug of depth *d* in a run of *n* threads and *k*
steps with probability 1/(*n k*^(*d*-1)) at least, far more often than one that draws at every step.

Here channels and processes take the place of threads. The delays of links, drawn from the seed, are
the first priorities: what is on the shorter links comes first. At a change point one of them is put
behind all others: a link on which every packet is late from then on, or the process that has just
delivered something, which stands still for a while, with its timers. A step is a delivery anywhere.

All of this is said with faults that every engine can do (``reordering`` of all packets, ``slow``,
``pause``) and with triggers, not with a scheduler of the simulator's own: so an experiment file is all
that is needed to repeat a run, on any engine, and shrinking a schedule is dropping faults.
"""

import random

from testbed.experiment.network import Network
from testbed.fuzz.elements import Table, any_link, rounded

MOST_CHANGES = 4
FACTOR_MOST = 50  # of a slow link


def change_points(
    network: Network, steps: int, late_ms: float, fifo: bool, rng: random.Random
) -> list[Table]:
    """A few changes of priorities, some of them from the start, in a run of that many deliveries.

    ``fifo``: packets of a link must not overtake each other, so a late link is a slow one.
    """
    drawn: list[Table] = []
    for _ in range(rng.randint(1, MOST_CHANGES)):
        when: Table = {"when": {"delivered": rng.randint(1, max(1, steps))}}
        length = max(0.001, rounded(rng.uniform(0.1, 1) * late_ms))
        if rng.random() < 0.3:
            drawn.append({"kind": "pause", "node": "same", "for_ms": length, **when})
            continue
        begins = when if rng.random() < 0.5 else {}
        late: Table = {"kind": "reordering", "rate": 1.0, "late_ms": length}
        if fifo:
            factor = rounded(rng.uniform(1, FACTOR_MOST))
            late = {"kind": "slow", "factor": factor, "for_ms": 10 * length}
        drawn.append({**late, "link": any_link(network, rng), **begins})
    return drawn
