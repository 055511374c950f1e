"""``scripts/reproduce errata``."""

import sys

from scripts.reproductions.command import options_of, reproduced
from scripts.reproductions.errata.chapter import ERRATA, all_shown
from scripts.reproductions.show import show
from testbed.errors import UserError

if __name__ == "__main__":
    options = options_of(ERRATA)
    try:
        chapter = reproduced(ERRATA, options)
    except UserError as error:
        sys.exit(f"reproduce: {error}")
    directory = options.runs / ERRATA.name
    show(chapter, directory)
    for erratum in chapter.errata:
        (directory / f"{erratum.name}.svg").write_bytes(erratum.diagram)
    print(f"diagrams: {directory}")
    sys.exit(0 if all_shown(chapter) else 1)
