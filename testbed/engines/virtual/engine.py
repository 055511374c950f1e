"""The virtual engine: the mininet engine in a guest of its own, in exact virtual time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.engines.mininet.figures import figures
from testbed.engines.virtual.errors import GuestError
from testbed.engines.virtual.guest import GuestSettings, run_guest
from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.network import Network
from testbed.rundir import RunDirectory

PROJECT = Path(__file__).parents[3]
MEMORY_MB = 1024
MEMORY_MB_PER_NODE = 32

Progress = Callable[[str, int, int], None]


def run(
    experiment: Experiment,
    network: Network,
    directory: RunDirectory,
    progress: Progress,
    virtual: bool = True,
) -> dict[str, Any]:
    """Emulate the experiment of a prepared run directory in a guest, and give its figures."""
    complaints = bytearray()
    settings = GuestSettings(
        results=directory.path,
        virtual=virtual,
        seed=experiment.seed,
        memory_mb=MEMORY_MB + MEMORY_MB_PER_NODE * network.processes,
        cwd=PROJECT,
        stdout=_Steps(progress),
        stderr=complaints.extend,
    )
    command = [sys.executable, "-m", "testbed.engines.mininet", str(directory.path.resolve())]
    try:
        result = run_guest(command, settings)
    except GuestError as error:
        raise UserError(str(error)) from None
    directory.manifest["guest"] = {
        "boot_s": result.boot_s,
        "wall_s": result.wall_s,
        "guest_s": result.guest_s,
    }
    if result.returncode != 0:
        words = complaints.decode(errors="replace").strip().splitlines()
        last = words[-1] if words else f"exit status {result.returncode}"
        raise UserError(f"the emulation failed: {last}; see {result.console}")
    return figures(network, directory)


class _Steps:
    """Takes what the guest prints, and reports each line that tells of progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            stage, *numbers = line.decode(errors="replace").split()
            if len(numbers) == 2:
                self._progress(stage, int(numbers[0]), int(numbers[1]))
