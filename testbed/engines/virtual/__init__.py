"""The user-mode kernel in which an emulation runs in virtual time, without privileges."""

from testbed.engines.virtual.errors import (
    BootFailedError,
    GuestError,
    GuestHungError,
    GuestKilledError,
    GuestMemoryError,
    KernelNotBuiltError,
    ResultsNotWrittenError,
)
from testbed.engines.virtual.guest import EPOCH_NS, Guest, GuestResult, GuestSettings, run_guest

__all__ = [
    "EPOCH_NS",
    "BootFailedError",
    "Guest",
    "GuestError",
    "GuestHungError",
    "GuestKilledError",
    "GuestMemoryError",
    "GuestResult",
    "GuestSettings",
    "KernelNotBuiltError",
    "ResultsNotWrittenError",
    "run_guest",
]
