"""Chooses where a guest's memory lives, and whether the host lets it have files enough.

User-mode Linux keeps its memory in an unlinked file. On a tmpfs that file is plain memory; on a
disk the host keeps writing it back, and the guest is very slow. If the file cannot grow (a container's
/dev/shm often holds 64 MB), the guest dies of SIGBUS in the middle of a run, so the room is checked
beforehand.
"""

import os
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.virtual.errors import GuestMemoryError

_MIB = 1024 * 1024
# The kernel keeps a descriptor for each of the host's files that its guest has read: Python, Mininet
# and Ryu are some 1,250.
FILES = 2048


@dataclass(frozen=True)
class MemoryPlace:
    """A directory that has room for the guest's memory."""

    directory: Path
    slow: bool  # whether it is on a disk, where the guest works, but slowly


def choose_memory_place(
    memory_mb: int, candidates: Sequence[Path] | None = None, mounts: str | None = None
) -> MemoryPlace:
    """A place for the memory of a guest, on a tmpfs if possible."""
    available_mb = _available_mb()
    if available_mb < memory_mb:
        raise GuestMemoryError(
            f"The guest may use {memory_mb} MiB of memory and the host has {available_mb} MiB "
            "left: give the guest less, or end something."
        )
    tmpfs = _tmpfs_mounts(Path("/proc/mounts").read_text() if mounts is None else mounts)
    places = [
        MemoryPlace(directory, slow=_mount_of(directory) not in tmpfs)
        for directory in (_candidates() if candidates is None else candidates)
        if _has_room(directory, memory_mb)
    ]
    if not places:
        raise GuestMemoryError(
            f"No directory has {memory_mb} MiB of room for the guest's memory: give the guest "
            "less, enlarge /dev/shm, or point TMPDIR at a tmpfs with enough room."
        )
    return min(places, key=lambda place: place.slow)


def require_files() -> None:
    """Refuse to boot a guest that would run out of descriptors, which its programs cannot explain."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != most < FILES:
        raise GuestMemoryError(
            f"The guest needs {FILES} open files and may have {most}: raise the hard limit "
            "(`ulimit -Hn`; of a container, --ulimit nofile=65536)."
        )


def _candidates() -> Iterator[Path]:
    """The directories to try, best first."""
    if named := os.environ.get("TMPDIR"):
        yield Path(named)
    yield Path("/dev/shm")
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime)
    yield Path("/tmp")
    yield Path("/var/tmp")


def _has_room(directory: Path, memory_mb: int) -> bool:
    try:
        status = os.statvfs(directory)
    except OSError:
        return False
    # The guest's programs are executed from this file, which a noexec mount forbids. White space
    # would break the kernel's command line.
    usable = os.access(directory, os.W_OK | os.X_OK) and not status.f_flag & os.ST_NOEXEC
    spaced = any(letter.isspace() for letter in str(directory))
    return usable and not spaced and status.f_bavail * status.f_frsize >= memory_mb * _MIB


def _mount_of(directory: Path) -> Path:
    directory = directory.resolve()
    while not directory.is_mount():
        directory = directory.parent
    return directory


def _tmpfs_mounts(mounts: str) -> set[Path]:
    fields = (line.split() for line in mounts.splitlines())
    return {Path(where) for _, where, kind, *_ in fields if kind in ("tmpfs", "ramfs")}


def _available_mb() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    raise GuestMemoryError("/proc/meminfo does not say how much memory is available.")
