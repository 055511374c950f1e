"""Seconds from a command to its page: an experiment from end to end, and parts of it again.

The whole is what a user waits for: `testbed run` with all that it starts. While the network runs, Spark
starts; the digest alone has to wait for Spark, so the parts are more than the whole.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from scripts import parser
from scripts.benchmarks import timed

DEFAULT = Path(__file__).parents[1] / "experiments" / "overlay-vs-timestamp.toml"


def main() -> None:
    """Run the experiment, digest and report its runs again, and print the seconds of each."""
    command = parser("bench page", __doc__)
    command.add_argument("file", type=Path, nargs="?", default=DEFAULT, help="experiment file")
    command.add_argument("--engine", default="virtual")
    options = command.parse_args()
    print(f"{options.file.stem} on {options.engine}; load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-page-") as name:
        network = ["run", options.file, "--engine", options.engine, "--runs", name]
        measure("testbed --help", ["--help"])
        measure("from command to page", network)
        runs = sorted(path.parent for path in Path(name).glob("*/[0-9]*/manifest.json"))
        measure("the digest alone", ["digest", *runs])
        measure("the pages alone", ["report", *runs])


def measure(what: str, words: list[object]) -> None:
    """Run a command of the testbed, and print how long it took."""
    command = [sys.executable, "-m", "testbed", *map(str, words)]
    run = partial(subprocess.run, command, capture_output=True, text=True, check=False)
    seconds, done = timed(run)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr or done.stdout}")
    print(f"  {what:<24}{seconds:>8.1f} s", flush=True)


if __name__ == "__main__":
    main()
