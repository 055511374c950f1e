"""How much later than necessary were messages delivered?

Causal order lets process p deliver m as soon as m and all of m's causal past that is addressed to p
have arrived: at the latest of these arrivals. A message arrives when it is first held back, or, if it
never is, when it is delivered. A later delivery was delayed by the protocol, which knew too little.
What p never delivers delays nothing, and a sender's own messages are left out.

A causal past has one last message of each sender, so the latest arrival is found as the oracle finds
overtaking: a running maximum over each sender's messages to p, looked up once for each sender.
"""

import numpy as np
from numpy.typing import NDArray

from testbed.check.history import Bools, History, Ints
from testbed.check.judge import NOT_DELIVERED, Judge
from testbed.check.verdict import Verdict
from testbed.progress import Tick

Times = NDArray[np.int64]


def check_delays(judge: Judge, verdict: Verdict, _: Tick) -> Verdict:
    """Measure a valid run."""
    return verdict.with_figures(summarise(added_delays(judge))) if verdict.ok else verdict


def added_delays(judge: Judge) -> Times:
    """By how many nanoseconds each delivery of a run came later than causal order requires."""
    parts = [_delays_at(judge, process) for process in judge.history.tracks]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def summarise(delays: Times) -> dict[str, float]:
    """The mean and the maximum, and the share of deliveries that were delayed at all."""
    if not len(delays):
        return {}
    return {
        "added_delay_ms_mean": float(delays.mean()) / 1e6,
        "added_delay_ms_max": float(delays.max()) / 1e6,
        "delayed_percent": 100 * float((delays > 0).mean()),
    }


def _delays_at(judge: Judge, process: int) -> Times:
    position = judge.positions(process)
    messages = np.flatnonzero(position != NOT_DELIVERED).astype(np.int32)
    times = judge.history.tracks[process].times[position[messages]]
    arrived = np.full(len(position), NOT_DELIVERED, np.int64)
    arrived[messages] = times
    held, since = _held(judge.history, process)
    came = position[held] != NOT_DELIVERED
    np.minimum.at(arrived, held[came], since[came])
    ordered = np.where(judge.ordered_at(process), arrived, NOT_DELIVERED)
    latest = judge.maximum_over_past(messages, judge.running_maximum(ordered))
    delays: Times = times - np.maximum(latest, arrived[messages])
    others: Bools = judge.history.home[messages] != judge.history.logs.node(process)
    return delays[others]


def _held(history: History, process: int) -> tuple[Ints, Times]:
    """The slots of the messages that were held back, and when."""
    log = history.logs.of[process]
    slots = history.slot_of[np.frombuffer(log.held, np.int32)]
    sent = slots < history.slots
    return slots[sent], np.frombuffer(log.held_times, np.int64)[sent]
