"""With sudo, results belong to whoever called, and so may what root executes: that is told."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import testbed
from testbed.engines.virtual.errors import KernelNotBuiltError
from testbed.engines.virtual.kernel import find_kernel

WRITABLE = stat.S_IWGRP | stat.S_IWOTH
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


@contextmanager
def handed_over(directory: Path) -> Iterator[None]:
    """When this is over, give what root has made in a directory to the user who called sudo.

    A directory that was there before and is another's stays as it is. Links are not followed, and
    what somebody puts in the place of the directory meanwhile is not touched: it is held open.
    """
    user, group = (os.environ.get(f"SUDO_{which}", "") for which in ("UID", "GID"))
    if os.geteuid() != 0 or not user.isdecimal() or not group.isdecimal() or not int(user):
        yield
        return
    path = directory.absolute()
    there = next(p for p in (path, *path.parents) if p.is_dir())
    new = path.relative_to(there).parts[:1]  # the first of the directories that are to be made
    held = os.open(there, DIRECTORY)
    try:
        yield
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):  # nothing was made, or it is gone
            if new:
                held, parent = os.open(new[0], DIRECTORY | os.O_NOFOLLOW, dir_fd=held), held
                os.close(parent)
            owner = os.fstat(held).st_uid
            if owner == int(user) or (new and owner == 0):
                _give(held, int(user), int(group))
        os.close(held)


def _give(top: int, user: int, group: int) -> None:
    os.fchown(top, user, group)
    for _, directories, files, here in os.fwalk(".", dir_fd=top):
        for name in (*directories, *files):
            with suppress(FileNotFoundError):  # another run, beside this one, has just renamed it
                if os.stat(name, dir_fd=here, follow_symlinks=False).st_uid == 0:
                    os.chown(name, user, group, dir_fd=here, follow_symlinks=False)


def executed() -> list[Path]:
    """What a command executes: the testbed, its Python, and the kernel of the virtual engine."""
    found = [Path(testbed.__file__).parent, Path(sys.prefix)]
    with suppress(KernelNotBuiltError, OSError):
        kernel = find_kernel()
        found += [kernel.linux.parent, kernel.linux, kernel.guard.parent, kernel.guard]
    return found


def caution(paths: Iterable[Path]) -> str | None:
    """A sentence if this is root and somebody else can write any of these."""
    if os.geteuid() != 0:
        return None
    others = [path for path in paths if path.exists() and _others(path.stat())]
    if not others:
        return None
    return (
        f"root executes what other users can write: {', '.join(map(str, others))}; whoever can write "
        "it can be root here (docs/security.md)"
    )


def _others(status: os.stat_result) -> bool:
    return status.st_uid != 0 or bool(status.st_mode & WRITABLE)
