"""Sweep: 40 simulator runs as Spark tasks, on one core and on two, in turn.

What is timed is from the start of the first run to the end of the last, as the runs' own manifests
have it: the start of Spark, the tables and the plots do not gain from a second core.
"""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track

from scripts import parser

SWEEP = """
name = "bench"
seed = [1, 2, 3, 4, 5]
protocol = [{{ name = "overlay" }}, {{ name = "timestamp" }}]
[[topology]]
model = "pure-random"
nodes = 40
edge_probability = 0.15
[[topology]]
model = "pure-random"
nodes = 60
edge_probability = 0.1
[workload]
model = "bursts"
duration_ms = {duration}
payload_bytes = [0, 100]
"""
MASTERS = ("local[1]", "local[2]")


def main() -> None:
    """Sweep on one core and on two in turn, and compare."""
    command = parser("bench sweep", __doc__)
    command.add_argument("--rounds", type=int, default=2)
    command.add_argument("--duration-ms", type=float, default=10, help="how long senders send")
    options = command.parse_args()
    seconds: dict[str, list[float]] = {master: [] for master in MASTERS}
    turns = [master for _ in range(options.rounds) for master in MASTERS]
    print(f"40 runs, load {os.getloadavg()[0]:.1f}")
    for master in track(turns, "sweep", console=Console(stderr=True), transient=True):
        seconds[master].append(sweep(master, options.duration_ms))
    for master, times in seconds.items():
        print(f"  {master}  {', '.join(f'{t:.1f}' for t in times)} s")
    one, two = (median(seconds[master]) for master in MASTERS)
    print(f"  two cores are {one / two:.2f} times as fast as one")


def sweep(master: str, duration_ms: float) -> float:
    """Seconds from the first run's start to the last one's end."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "bench.toml"
        file.write_text(SWEEP.format(duration=duration_ms))
        command = [sys.executable, "-m", "testbed", "sweep", str(file)]
        options = ["--runs", f"{scratch}/runs", "--master", master]
        subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
        manifests = [json.loads(m.read_text()) for m in Path(scratch).rglob("manifest.json")]
    started, ended = (
        [datetime.fromisoformat(manifest[key]) for manifest in manifests]
        for key in ("started", "ended")
    )
    return (max(ended) - min(started)).total_seconds()


if __name__ == "__main__":
    main()
