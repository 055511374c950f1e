"""The analysis of gossip as balls and bins: how many processes an event reaches, with how many copies.

A process that has the event sends it to F others, drawn at random, in every round until the event is T
rounds old ("keep"). Koldehofe, "Simple Gossiping with Balls and Bins", 2004, has all rounds in step;
here is also what becomes of it if they are not, so that a process may pass on in the same round what it
has just got. Messages take no time.
"""

from math import exp, log
from typing import NamedTuple


class Spread(NamedTuple):
    """What is expected of one event."""

    coverage: float  # share of the processes that it reaches, its source included
    copies: float  # that are sent


def in_step(n: int, fanout: int, rounds: int) -> Spread:
    """All processes send at the same time: expected numbers, round by round."""
    informed, copies = 1.0, 0.0
    for _ in range(rounds):
        copies += fanout * informed
        informed += (n - informed) * (1 - (1 - fanout / (n - 1)) ** informed)
    return Spread(informed / n, copies)


def out_of_step(n: int, fanout: int, rounds: int) -> Spread:
    """Each process has its rounds at times of its own, and ages are times.

    Whoever has the event sends it once a round, at any moment alike: for many processes the share i
    that has it grows as i' = F i (1 - i), a logistic curve, which the first few steps of one event may
    leave by a part of a round in either direction.
    """
    grown = exp(fanout * rounds)
    return Spread(grown / (grown + n - 1), n * log((grown + n - 1) / n))
