"""``python -m testbed.engines.mininet DIRECTORY``: what the virtual engine runs in its guest.

Progress goes to standard output, a line for each step; what went wrong to standard error.
"""

import sys
from functools import partial
from pathlib import Path

from testbed.engines.mininet.emulate import emulate
from testbed.engines.mininet.engine import PROTOCOL_FAILED
from testbed.errors import ProtocolError, UserError
from testbed.runs.directory import RunDirectory


def main() -> int:
    """Emulate the scenario of a prepared run directory."""
    try:
        emulate(RunDirectory(Path(sys.argv[1])), partial(print, flush=True))
    except UserError as error:
        print(error, file=sys.stderr)
        return PROTOCOL_FAILED if isinstance(error, ProtocolError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
