"""The virtual engine: the mininet engine in a guest of its own, in exact virtual time."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.engines.mininet.engine import Emulation
from testbed.engines.mininet.summary import summarise_emulation
from testbed.engines.virtual.errors import GuestError
from testbed.engines.virtual.guest import GuestSettings, run_guest
from testbed.errors import UserError
from testbed.experiment import Scenario
from testbed.progress import Progress
from testbed.runs.directory import RunDirectory

PROJECT = Path(__file__).parents[3]
MEMORY_MB = 1024
MEMORY_MB_PER_NODE = 32


def memory_mb(nodes: int) -> int:
    """How much a guest may use that emulates so many nodes."""
    return MEMORY_MB + MEMORY_MB_PER_NODE * nodes


class VirtualEngine(Emulation):
    """The mininet engine in a guest of its own, in exact virtual time, without root."""

    def run(
        self, scenario: Scenario, directory: RunDirectory, progress: Progress
    ) -> dict[str, Any]:
        """Emulate the scenario of a prepared run directory in a guest, and give its figures."""
        return run_all([(scenario, directory)], progress)[0]


def run_all(
    runs: Sequence[tuple[Scenario, RunDirectory]], progress: Progress, virtual: bool = True
) -> list[dict[str, Any]]:
    """Emulate many scenarios in one boot, one after the other, and give the figures of each.

    Saves some seconds a run. Each is as exact as alone, but what comes after another starts from
    another state of the kernel: to repeat it to the byte, repeat them all.
    """
    paths = [directory.path.resolve() for _, directory in runs]
    complaints = bytearray()
    settings = GuestSettings(
        results=paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths)),
        virtual=virtual,
        seed=runs[0][0].experiment.seed,
        memory_mb=memory_mb(max(scenario.network.processes for scenario, _ in runs)),
        cwd=PROJECT,
        console=paths[0] / "console.log",
        stdout=_Steps(progress),
        stderr=complaints.extend,
    )
    try:
        result = run_guest(
            [sys.executable, "-m", "testbed.engines.mininet", *map(str, paths)], settings
        )
    except GuestError as error:
        raise UserError(str(error)) from None
    if result.returncode != 0:
        words = complaints.decode(errors="replace").strip().splitlines()
        last = words[-1] if words else f"exit status {result.returncode}"
        raise UserError(f"the emulation failed: {last}; see {result.console}")
    found = []
    for scenario, directory in runs:
        directory.manifest["guest"] = {
            "boot_s": result.boot_s,
            "wall_s": result.wall_s,
            "guest_s": result.guest_s,
        }
        protocol = scenario.experiment.protocol
        found.append(summarise_emulation(protocol, scenario.network, directory))
    return found


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
