"""Which of the host's files a guest may use: what a run needs to read, and its results.

``guard.c`` has the host's kernel enforce it, by Landlock. Of /etc it is what everybody may read; the
caller's home is not among it, except for the testbed if that is there.
"""

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_IROTH, S_ISLNK

PROJECT = Path(__file__).parents[3]
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
OURS = ("testbed", "protocols", "topologies")
CREATE_RULESET, WHICH_VERSION = 444, 1  # a system call, and a flag of it


def landlock_version() -> int:
    """The version of Landlock that the host's kernel has; 0 if it has none."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    return max(0, int(call(CREATE_RULESET, None, ctypes.c_size_t(0), WHICH_VERSION)))


def walls(writable: Iterable[Path], kernel: Path, readable: Iterable[Path]) -> bytes:
    """What guard.c is told: "w", "r" or "l" and a path, each ended by a NUL."""
    environment = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    ours = [PROJECT / part for part in OURS]
    rules = [
        *(("w", path) for path in (*writable, "/dev/null")),
        *(("r", path) for path in (*SYSTEM, *environment, *ours, kernel, *readable)),
        *(("r", path) for path in public("/etc")),
        *(("r", path) for path in ("/proc/self", "/proc/cpuinfo", "/proc/mounts")),
        ("l", PROJECT),
    ]
    return b"".join(os.fsencode(f"{letter}{path}") + b"\0" for letter, path in rules)


def public(top: str) -> list[str]:
    """As few paths as possible that have all below a directory that everybody may read."""
    found = []
    for entry in os.scandir(top):
        if not _is_public(entry.path):
            continue
        if not entry.is_dir(follow_symlinks=False) or all(map(_is_public, _below(entry.path))):
            found.append(entry.path)
        else:
            found += public(entry.path)
    return found


def _is_public(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # not even this user may look, or it has just gone
        return False
    return S_ISLNK(mode) or bool(mode & S_IROTH)


def _below(top: str) -> Iterator[str]:
    for where, directories, files in os.walk(top):
        yield from (os.path.join(where, name) for name in (*directories, *files))
