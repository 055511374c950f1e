"""A sweep of small experiments, to be varied."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.experiment.expand import expand
from testbed.sweep.points import Sweep
from testbed.sweep.runner import run_point

FILE = Path("x.toml")
PLAIN: dict[str, Any] = {
    "name": "small",
    "protocol": {"name": "overlay"},
    "topology": {"model": "pure-random", "nodes": 8, "edge_probability": 0.5},
    "workload": {"model": "bursts", "senders": 2, "burst": 1, "duration_ms": 1},
}
SIZES = [
    {"model": "pure-random", "nodes": 8, "edge_probability": 0.5},
    {"model": "pure-random", "nodes": 12, "edge_probability": 0.4},
]
TIMESTAMPS = {"name": "timestamp", "multicast": ["network", "unicast"]}


def with_(**tables: Any) -> dict[str, Any]:
    return {
        **PLAIN,
        **{k: {**PLAIN[k], **v} if isinstance(v, dict) else v for k, v in tables.items()},
    }


def sweep_of(**tables: Any) -> Sweep:
    return Sweep.of(expand(with_(**tables), FILE))


def run_all(sweep: Sweep, runs: Path, points: Iterable[str] | None = None) -> None:
    (runs / sweep.within).mkdir(parents=True, exist_ok=True)
    for point in sweep.points if points is None else points:
        assert run_point(sweep.within, point, sweep.points[point], runs) is None
