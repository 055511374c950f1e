"""File descriptors of a process that was forked: what it inherits and should not keep open."""

import os
import resource


def close_all_but(*kept: int, first: int = 3) -> None:
    """Close all descriptors from the first on but these: a pipe ends when all its writers are gone."""
    for number in sorted(kept):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
