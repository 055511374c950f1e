"""The directory of a sweep: which points have a run, and who may write there.

runs/<name>/sweep-<hash of all points>/
  sweep.toml        the file that was swept
  <run>/            one for each point; its manifest names the point
  points.parquet    one row a run: the swept keys, the protocol, the verdict, all figures
  trends.parquet    every figure averaged over seeds: mean, 95 % half-width, number of runs
  figures/          and report.html: the same to look at
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import UserError
from testbed.runs.directory import RunDirectory, runs_in
from testbed.sweep.moving import PLACE
from testbed.sweep.points import Sweep


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep every other sweep out of a directory, and wait for runs whose sweep was killed."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{directory}: this sweep is running already; wait for it, or interrupt it first"
            ) from None
        with busy(directory, fcntl.LOCK_EX):
            pass
        yield


@contextmanager
def busy(directory: Path, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """A lock that every run of a sweep shares while it writes, so that none is taken for dead."""
    with (directory / ".busy").open("w") as lock:
        fcntl.flock(lock, how)
        yield


def finished(directory: Path, sweep: Sweep) -> dict[str, Path]:
    """The newest run of each point that has one and is not to be repeated."""
    whole = [(RunDirectory(path).manifest.get("point"), path) for path in _whole(directory)]
    return {point: path for point, path in whole if point in sweep.points}


def remove_unfinished(directory: Path) -> int:
    """Remove the directories of runs that were stopped or failed; the number of them.

    Those of code that has changed since stay, though nobody counts them any more.
    """
    keep = set(_whole(directory))
    left = [path for path in runs_in(directory) if path not in keep]
    for path in left:
        shutil.rmtree(path)
    for link in directory.glob(".latest-*"):
        link.unlink(missing_ok=True)
    shutil.rmtree(directory / PLACE, ignore_errors=True)
    return len(left)


def _whole(directory: Path) -> Iterator[Path]:
    """The runs that came to their end and were judged, the oldest first."""
    for path in runs_in(directory):
        run = RunDirectory(path)
        try:
            manifest = run.manifest
        except UserError:
            continue
        if (
            manifest["status"] == "complete"
            and "verdict" in manifest
            and run.summary_file.is_file()
        ):
            yield path
