"""What can go wrong with a guest, each error with a sentence that names the remedy."""

from pathlib import Path


class GuestError(Exception):
    """The guest did not run the command to its end; ``console`` is its log, if there is one."""

    def __init__(self, sentence: str, console: Path | None = None) -> None:
        super().__init__(f"{sentence} Its console log is {console}." if console else sentence)
        self.console = console


class KernelNotBuiltError(GuestError):
    """There is no user-mode kernel for this version of the testbed."""


class GuestMemoryError(GuestError):
    """The host has no room for the guest's memory."""


class BootFailedError(GuestError):
    """The guest ended before the command was started."""


class GuestHungError(GuestError):
    """The guest was ended because it made no progress, or exceeded its time limit."""


class GuestKilledError(GuestError):
    """The guest ended while the command was running: it was killed, or its kernel panicked."""


class ResultsNotWrittenError(GuestError):
    """The command ended, but its results could not be written to the host."""
