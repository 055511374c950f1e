"""With sudo, results belong to whoever called, who goes on with them as an ordinary user."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def handed_over(directory: Path) -> Iterator[None]:
    """When this is over, give what root has made in a directory to the user who called sudo.

    A directory that was there before and is another's stays as it is. Links are not followed.
    """
    user, group = (int(os.environ.get(f"SUDO_{which}", "0")) for which in ("UID", "GID"))
    if os.geteuid() != 0 or not user:
        yield
        return
    top = next((p for p in reversed([directory, *directory.parents]) if not p.exists()), directory)
    theirs = not top.exists() or top.stat().st_uid == user
    try:
        yield
    finally:
        if theirs and top.is_dir():
            os.chown(top, user, group)
            _give(top, user, group)


def _give(top: Path, user: int, group: int) -> None:
    for _, directories, files, here in os.fwalk(top):
        for name in (*directories, *files):
            with suppress(FileNotFoundError):  # another run, beside this one, has just renamed it
                if os.stat(name, dir_fd=here, follow_symlinks=False).st_uid == 0:
                    os.chown(name, user, group, dir_fd=here, follow_symlinks=False)
