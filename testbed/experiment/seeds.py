"""One seed makes a whole run; each use of chance draws from a stream of its own.

Streams are independent, so that a longer workload does not change the topology, and a node's draws
are the same on every engine.
"""

import random


def stream(seed: int, *name: object) -> random.Random:
    """The random stream of that name; the same for the same seed on every machine."""
    return random.Random("/".join(map(str, (seed, *name))))
