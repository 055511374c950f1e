"""The flood of Overlay on a ring of 32 nodes, and the same in ns-3 where it is installed."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.experiment import Experiment, parse

DIMENSIONS, MESSAGES = 5, 5  # of the hypercube, and of each process
SOURCE = Path(__file__).with_name("ring.cc")
LIBRARIES = ("core", "network", "internet", "point-to-point")


def ring() -> Experiment:
    """Some 130,000 hops over the links of the ring."""
    document = {
        "name": "bench-ring",
        "protocol": {"name": "overlay"},
        "topology": {"model": "ring", "nodes": 1 << DIMENSIONS},
        "links": {"delay_ms": 0.5, "bandwidth_mbit": 10},
        "workload": {"model": "bursts", "senders": 0, "burst": 1, "duration_ms": MESSAGES},
    }
    return parse(document, Path("bench-ring"))[0]


def has_ns3() -> bool:
    """Whether Debian's libns3-dev and a C++ compiler are installed."""
    return bool(shutil.which("g++")) and Path("/usr/include/ns3/core-module.h").exists()


def ns3_rates(rounds: int) -> list[float]:
    """Hops per second of processor in ns-3, round by round."""
    rates = []
    with tempfile.TemporaryDirectory(prefix="bench-ns3-") as directory:
        program = Path(directory) / "ring"
        libraries = [f"-lns3-{name}" for name in LIBRARIES]
        words = ["g++", "-O2", "-std=c++17", str(SOURCE), "-o", str(program), *libraries]
        subprocess.run(words, check=True)
        for _ in range(rounds):
            told = subprocess.check_output([program, str(DIMENSIONS), str(MESSAGES)], text=True)
            hops, seconds = map(float, told.split())
            rates.append(hops / seconds)
    return rates
