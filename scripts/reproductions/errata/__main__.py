"""``scripts/reproduce errata``."""

import sys

from scripts.reproductions.command import main
from scripts.reproductions.errata.chapter import ERRATA, all_shown

if __name__ == "__main__":
    sys.exit(0 if all_shown(main(ERRATA)) else 1)
