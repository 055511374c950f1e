"""The ways in which the paper can be read: by which clock, how integers are counted, what a mean is of.

The paper's own is the first: turns one after the other, an entry of 3 + |Dests| integers as in its
Fig. 2, and the mean over processes of the mean over their messages (its MMV).
"""

from collections.abc import Callable
from typing import NamedTuple

from scripts.reproductions.chandra.points import (
    COPY,
    EVENTS,
    MESSAGE,
    PROCESS,
    ROUNDS,
    TURNS,
    Found,
    Measured,
    Size,
)

KS, KS_PRIME = BOTH = ("KS", "KS'")
Count = Callable[[Size, int], float]  # integers of a message or a log, given n


class Counting(NamedTuple):
    """A way of counting the integers of KS and of KS'."""

    ks: str
    ks_prime: str
    of_ks: Count
    of_ks_prime: Count


def _array(n: int) -> float:
    return n * n / 32


PRINTED = Counting(
    "3 + |Dests|",
    "flags",
    lambda size, n: size.own + 3 * size.entries + size.destinations,
    lambda size, n: _array(n) + size.destinations + size.empty,
)
LITERAL = PRINTED._replace(ks_prime="entries", of_ks_prime=lambda s, n: _array(n) + s.entries)
SHORTER = Counting(
    "2 + |Dests|",
    "entries + dests",
    lambda size, n: size.own + 2 * size.entries + size.destinations,
    lambda size, n: _array(n) + size.entries + size.destinations,
)
COUNTINGS = (PRINTED, LITERAL, SHORTER)


class Reading(NamedTuple):
    """One way to read the paper."""

    clock: str = TURNS
    counting: Counting = PRINTED
    weighting: str = PROCESS


PAPER = Reading()
READINGS = {
    "turns, Fig. 2": PAPER,
    "turns, KS' by entries": Reading(counting=LITERAL),
    "turns, 2 + |Dests|": Reading(counting=SHORTER),
    "turns, Fig. 2, by message": Reading(weighting=MESSAGE),
    "turns, Fig. 2, by copy": Reading(weighting=COPY),
    "turns, 2 + |Dests|, by copy": Reading(counting=SHORTER, weighting=COPY),
    "events, Fig. 2": Reading(EVENTS),
    "events, 2 + |Dests|": Reading(EVENTS, SHORTER),
    "rounds, Fig. 2": Reading(ROUNDS),
    "rounds, 2 + |Dests|": Reading(ROUNDS, SHORTER),
}
Seeds = tuple[float, ...]  # one number for each seed
Curve = dict[float, Seeds]  # per cent of n², over what varies


class Curves(NamedTuple):
    """All curves by one reading."""

    found: Found
    reading: Reading = PAPER

    def __call__(self, figure: int, setting: int, whose: str = KS, log: bool = False) -> Curve:
        """The curve of KS, or of KS', in a figure's setting: of what messages carry, or of logs."""
        curve = {
            point.x: tuple(self._percent(run, whose, log) for run in runs)
            for point, runs in self.found.items()
            if (point.clock, point.figure, point.setting) == (self.reading.clock, figure, setting)
        }
        if not curve:
            raise LookupError(f"Fig. {figure}, S{setting}, by {self.reading.clock}")
        return curve

    def _percent(self, run: Measured, whose: str, log: bool) -> float:
        counting = self.reading.counting
        count = counting.of_ks if whose == KS else counting.of_ks_prime
        size = run.log if log else run.message[self.reading.weighting]
        return 100 * count(size, run.nodes) / run.nodes**2
