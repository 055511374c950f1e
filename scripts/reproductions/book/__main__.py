"""``scripts/reproduce all``."""

from scripts.reproductions.book.command import main

if __name__ == "__main__":
    main()
