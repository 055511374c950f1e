"""File descriptors: what a process that was forked should not keep open, and waiting for one."""

import os
import resource
import select
from typing import IO


def close_all_but(*kept: int, first: int = 3) -> None:
    """Close all descriptors from the first on but these: a pipe ends when all its writers are gone."""
    for number in sorted(kept):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def readable(file: int | IO[str], timeout_s: float) -> bool:
    """Whether there is something to read from a file within this time."""
    poll = select.poll()  # not select(), which knows no more than 1024 open files
    poll.register(file, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
