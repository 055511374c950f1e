"""The virtual engine: the mininet engine in a guest of its own, in exact virtual time."""

import sys
from pathlib import Path
from typing import Any

from testbed import protocols
from testbed.engines.mininet.engine import PROTOCOL_FAILED, Emulation
from testbed.engines.mininet.summary import summarise_emulation
from testbed.engines.virtual.errors import GuestError
from testbed.engines.virtual.guest import GuestSettings, run_guest
from testbed.engines.virtual.kernel import Kernel
from testbed.engines.virtual.walls import landlock_version
from testbed.errors import ProtocolError, UserError
from testbed.experiment import Scenario
from testbed.progress import Progress
from testbed.protocols import Protocol
from testbed.runs.directory import RunDirectory

PROJECT = Path(__file__).parents[3]
MEMORY_MB = 1024
MEMORY_MB_PER_NODE = 16  # 600 nodes with Overlay use some 6


def is_ours(protocol: type[Protocol]) -> bool:
    """Whether a protocol came with the testbed; another's code is traced, see docs/security.md."""
    return protocol.__module__.startswith(f"{protocols.__name__}.")


def memory_mb(nodes: int) -> int:
    """The most memory that a guest may use to emulate a number of nodes."""
    return MEMORY_MB + MEMORY_MB_PER_NODE * nodes


class VirtualEngine(Emulation):
    """The mininet engine in a guest of its own, without root, in exact virtual time or in real time."""

    def __init__(
        self, virtual: bool = True, trusted: bool | None = None, kernel: Kernel | None = None
    ) -> None:
        """Use a kernel other than the best, or say whether to trust the protocol's code."""
        super().__init__()
        self.virtual = virtual
        self.trusted = trusted
        self.kernel = kernel

    def run(
        self, scenario: Scenario, directory: RunDirectory, progress: Progress
    ) -> dict[str, Any]:
        """Emulate the scenario of a prepared run directory in a guest, and give its figures."""
        path, complaints = directory.path.resolve(), bytearray()
        ours = is_ours(scenario.experiment.protocol)
        settings = GuestSettings(
            results=path,
            virtual=self.virtual,
            trusted=ours if self.trusted is None else self.trusted,
            kernel=self.kernel,
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
            if result.returncode == PROTOCOL_FAILED:
                raise ProtocolError(last)
            raise UserError(f"the emulation failed: {last}; see {result.console}")
        names = ("boot_s", "wall_s", "cpu_s", "guest_s", "kernel", "mode", "addresses")
        facts = {name: getattr(result, name) for name in names}
        directory.manifest["guest"] = {**facts, "landlock": landlock_version()}
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
