"""``scripts/reproduce gidenstam``."""

from scripts.reproductions.command import main
from scripts.reproductions.gidenstam.chapter import GIDENSTAM

if __name__ == "__main__":
    main(GIDENSTAM)
