"""Follows the output of a guest.

The guest's output is a file on the host, not a pipe: a full pipe would make the guest's programs
wait, and while all of them wait, virtual time jumps. A file never blocks.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20


class FollowedFile(AbstractContextManager["FollowedFile"]):
    """A file that may not exist yet; what is appended to it is handed to some sinks."""

    def __init__(self, path: Path, *sinks: Callable[[bytes], object]) -> None:
        self._path = path
        self._sinks = sinks
        self._file: BinaryIO | None = None
        self.size = 0  # how many bytes have been handed on

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def pump(self) -> None:
        """Hand on what has been appended since the last time."""
        if self._file is None:
            try:
                self._file = self._path.open("rb", buffering=0)
            except FileNotFoundError:
                return
        while data := self._file.read(_CHUNK):
            self.size += len(data)
            for sink in self._sinks:
                sink(data)


def fingerprint(directory: Path) -> int:
    """A number that changes when a file in the directory grows, appears or disappears."""
    facts = []
    for base, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                status = os.stat(os.path.join(base, name))
                facts.append((base, name, status.st_size, status.st_mtime_ns))
    return hash(tuple(facts))
