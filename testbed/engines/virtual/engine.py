"""The virtual engine: the mininet engine in a guest of its own, in exact virtual time."""

import sys
from pathlib import Path
from typing import Any

from testbed.engines.mininet.engine import Emulation
from testbed.engines.mininet.summary import summarise_emulation
from testbed.engines.virtual.errors import GuestError
from testbed.engines.virtual.guest import GuestSettings, run_guest
from testbed.engines.virtual.walls import landlock_version
from testbed.errors import UserError
from testbed.experiment import Scenario
from testbed.progress import Progress
from testbed.runs.directory import RunDirectory

PROJECT = Path(__file__).parents[3]
MEMORY_MB = 1024
MEMORY_MB_PER_NODE = 32


def memory_mb(nodes: int) -> int:
    """The most memory that a guest may use to emulate a number of nodes."""
    return MEMORY_MB + MEMORY_MB_PER_NODE * nodes


class VirtualEngine(Emulation):
    """The mininet engine in a guest of its own, without root, in exact virtual time or in real time."""

    def __init__(self, virtual: bool = True) -> None:
        super().__init__()
        self.virtual = virtual

    def run(
        self, scenario: Scenario, directory: RunDirectory, progress: Progress
    ) -> dict[str, Any]:
        """Emulate the scenario of a prepared run directory in a guest, and give its figures."""
        path, complaints = directory.path.resolve(), bytearray()
        settings = GuestSettings(
            results=path,
            virtual=self.virtual,
            seed=scenario.experiment.seed,
            memory_mb=memory_mb(scenario.network.processes),
            cwd=PROJECT,
            stdout=_ProgressLines(progress),
            stderr=complaints.extend,
        )
        try:
            result = run_guest(
                [sys.executable, "-m", "testbed.engines.mininet", str(path)], settings
            )
        except GuestError as error:
            raise UserError(str(error)) from None
        if result.returncode != 0:
            lines = complaints.decode(errors="replace").strip().splitlines()
            last = lines[-1] if lines else f"exit status {result.returncode}"
            raise UserError(f"the emulation failed: {last}; see {result.console}")
        times = {name: getattr(result, name) for name in ("boot_s", "wall_s", "guest_s")}
        directory.manifest["guest"] = {**times, "landlock": landlock_version()}
        return summarise_emulation(scenario.experiment.protocol, scenario.network, directory)


class _ProgressLines:
    """Parses the output of the guest, and reports the lines that are about progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            stage, *numbers = line.decode(errors="replace").split()
            if len(numbers) == 2:
                self._progress(stage, int(numbers[0]), int(numbers[1]))
