"""How large a run will be, before it starts: how many messages, and how much time, memory and disk.

The constants were measured with overlay and timestamp on 32 to 600 nodes. A protocol may send far more
than one copy for each delivery, so memory and disk are lower bounds: what exceeds them cannot run.
"""

import io
import os
import pickle
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from typing_extensions import override

from testbed.errors import UserError
from testbed.experiment.scenario import Scenario
from testbed.protocols import Place, Protocol

BASE_BYTES = 60_000_000
BYTES_PER_DELIVERY = 200
BYTES_PER_PAST = 4  # of the oracle, for each message and sender
LOG_BYTES_PER_DELIVERY = 60
SECONDS_PER_DELIVERY = {"simulate": 1e-5, "virtual": 1e-3}  # in real time the clock decides
HEARTBEAT_S = 0.05  # of a protocol that never rests, as a guess
LONG_S = 600
UNITS = {"TB": 1e12, "GB": 1e9, "MB": 1e6}


@dataclass(frozen=True)
class Estimate:
    """What a run takes; there may be fewer answers, so memory and disk are without them."""

    origin: object  # the file
    messages: int
    deliveries: int
    seconds: float
    memory: float  # bytes, of the engine and the oracle, at least
    disk: float  # bytes, of the event logs, at least

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """What follows from what the applications send."""
        experiment, processes = scenario.experiment, scenario.network.processes
        times = 1 + experiment.workload.answers_per_message()
        sent_to = (processes if to is None else len(to) for _, _, _, to in scenario.sends)
        unasked = sum(sent_to)
        senders = len({node for _, node, _, _ in scenario.sends})
        lasts = scenario.last_send / 1e9
        beats = 0.0
        if not experiment.protocol.rests:
            lasts += experiment.workload.settling / 1e9
            beats = processes * lasts / HEARTBEAT_S
        pace = SECONDS_PER_DELIVERY.get(experiment.engine)
        return cls(
            experiment.origin,
            len(scenario.sends) * times,
            unasked * times,
            lasts if pace is None else pace * (unasked * times + beats),
            BASE_BYTES
            + BYTES_PER_DELIVERY * unasked
            + BYTES_PER_PAST * len(scenario.sends) * senders
            + processes * _state_bytes(scenario.process(0)),
            LOG_BYTES_PER_DELIVERY * unasked,
        )

    def check(self, runs: Path) -> str | None:
        """Refuse what cannot fit; a sentence if it will be long."""
        if self.memory > (memory := _memory()):
            raise UserError(
                f"{self}: that takes {_bytes(self.memory)} of memory or more, and there is "
                f"{_bytes(memory)}; fewer nodes, senders or messages would fit"
            )
        if self.disk > (room := _room(runs)):
            raise UserError(
                f"{self}: their log takes {_bytes(self.disk)} or more, and {runs} has room for "
                f"{_bytes(room)}; choose another directory with --runs, or fewer messages"
            )
        if self.seconds < LONG_S:
            return None
        minutes = round(self.seconds / 60)
        time = f"{minutes} minutes" if minutes < 120 else f"{minutes // 60:,} hours"
        return f"{self}: that takes about {time} or more"

    def __str__(self) -> str:
        return f"{self.origin}: about {self.messages:,} messages and {self.deliveries:,} deliveries"


def _state_bytes(process: Protocol) -> int:
    """The size of a process's state at its beginning, without what all processes share."""
    out = io.BytesIO()
    try:
        _State(out).dump(vars(process))
    except Exception:  # a protocol may keep anything; then it counts for nothing
        return 0
    return out.tell()


class _State(pickle.Pickler):
    @override
    def persistent_id(self, obj: Any) -> str | None:
        return "place" if isinstance(obj, Place) else None


def _memory() -> float:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return pages if limit == resource.RLIM_INFINITY else min(pages, limit)


def _room(runs: Path) -> float:
    """The free bytes where a directory is, or will be made."""
    there = next(path for path in (runs.absolute(), *runs.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def _bytes(count: float) -> str:
    unit = next((unit for unit, size in UNITS.items() if count >= size), "MB")
    return f"{count / UNITS[unit]:,.0f} {unit}"
