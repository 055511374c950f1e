"""``python -m testbed.engines.mininet DIRECTORY``: what the virtual engine runs in its guest.

Progress goes to standard output, a line for each step; what went wrong to standard error.
"""

import sys
from pathlib import Path

from testbed.engines.mininet.emulate import emulate
from testbed.errors import UserError


def main() -> int:
    """Emulate the scenario of a prepared run directory."""
    try:
        emulate(Path(sys.argv[1]), lambda stage, done, of: print(stage, done, of, flush=True))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
