"""With sudo, results belong to whoever called, who goes on with them as an ordinary user."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
