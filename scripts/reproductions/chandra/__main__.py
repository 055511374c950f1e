"""``scripts/reproduce chandra``."""

from scripts.reproductions.chandra.chapter import CHANDRA
from scripts.reproductions.command import main

if __name__ == "__main__":
    main(CHANDRA)
