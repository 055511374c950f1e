"""``scripts/reproduce mostefaoui``."""

from scripts.reproductions.command import main
from scripts.reproductions.mostefaoui.chapter import MOSTEFAOUI

if __name__ == "__main__":
    main(MOSTEFAOUI)
