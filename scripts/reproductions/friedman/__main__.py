"""``scripts/reproduce friedman``."""

from scripts.reproductions.command import main
from scripts.reproductions.friedman.chapter import FRIEDMAN

if __name__ == "__main__":
    main(FRIEDMAN)
