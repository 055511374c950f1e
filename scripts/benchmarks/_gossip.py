"""Gossip among thousands of simulated processes: what it takes, in a Python process of its own.

python -m scripts.benchmarks._gossip PROCESSES
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from testbed.engines.simulate.engine import Simulation
from testbed.experiment import Experiment, Scenario, parse
from testbed.progress import silent
from testbed.runs.events import EventLog


def gossip(processes: int) -> Experiment:
    """A hundred processes may send, and ten do, in ten rounds, on a star."""
    document = {
        "name": "bench-gossip",
        "protocol": {"name": "cluster", "coordinators": 100},
        "topology": {"model": "star", "nodes": processes},
        "links": {"delay_ms": [0.25, 1.25], "bandwidth_mbit": 100},
        "workload": {
            "model": "rounds",
            "senders": 10,
            "per_round": 0.5,
            "round_ms": 100,
            "duration_ms": 1000,
            "settle_ms": 1000,
        },
    }
    return parse(document, Path("bench-gossip"))[0]


def main() -> None:
    """Run one to its end, and print what it took as JSON."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    with (
        tempfile.TemporaryDirectory() as directory,
        EventLog(Path(directory) / "nodes.jsonl") as log,
    ):
        simulation = Simulation(Scenario.of(gossip(int(sys.argv[1]))), log)
        simulation.run(silent)
    seconds = time.process_time() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = simulation.summary()
    told = {name: figures[name] for name in ("multicasts", "deliveries", "hops")}
    print(json.dumps({**told, "seconds": seconds, "bytes": most * 1024, "before": before * 1024}))
    sys.stdout.flush()
    os._exit(0)  # to take millions of objects apart would only take time


if __name__ == "__main__":
    main()
