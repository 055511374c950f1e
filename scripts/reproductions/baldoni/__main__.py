"""``scripts/reproduce baldoni``."""

from scripts.reproductions.baldoni.chapter import BALDONI
from scripts.reproductions.command import main

if __name__ == "__main__":
    main(BALDONI)
