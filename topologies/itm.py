"""GT-ITM's specification files, as its program ``itm`` reads them.

    <geo | hier | ts> <number of graphs> [<seed>]
    geo:   <parms>
    hier:  <levels> <connection 0..3> [<threshold>]        then one <parms> line for each level
    ts:    <stubs per transit node> <extra transit-stub edges> <extra stub-stub edges>
                                                           then <parms> of top, transit and stub
    <parms> = <nodes> <scale> <method> <alpha> [<beta> [<gamma>]]

Blank lines and what follows a # are skipped; several such sets may follow one another. Methods are
numbered as in GT-ITM's source of 1996: 1 waxman-1, 2 waxman-2, 3 pure-random, 4 exponential,
5 doar-leslie, 6 locality (its documentation has 4 and 5 the other way round), and may be named
instead. A seed of 0, or none, is GT-ITM's own 417890326. GT-ITM has its own random numbers: the
graphs here are of the same kind, not the same.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from .errors import TopologyError
from .flat import FLAT, FlatModel
from .graph import Graph
from .hierarchical import CONNECTIONS, MAX_LEVELS, Hierarchical
from .level import Level, Method
from .textfile import TextLine, lines_of, read_text
from .transit_stub import TransitStub

DEFAULT_SEED = 417890326
MAX_GRAPHS = 10_000
NAMES = tuple(FLAT)  # method names; GT-ITM's number of a method is its place here, counted from 1


@dataclass(frozen=True)
class Specification:
    """One graph of a specification file: its model, the file's seed, its number in the set."""

    model: FlatModel | Hierarchical | TransitStub
    seed: int
    number: int

    def generate(self) -> Graph:
        """Draw the graph; file and number decide it wholly."""
        return self.model.generate(random.Random(f"{self.seed}-{self.number}"))


def read_itm(path: str | Path) -> list[Specification]:
    """Read a specification file; one entry for each graph that it asks for."""
    return decode_itm(read_text(path), str(path))


def decode_itm(text: str, file: str = "specification") -> list[Specification]:
    """Read the text of a specification file."""
    lines = lines_of(text, file, comment="#")
    result: list[Specification] = []
    while (head := next(lines)).words:
        result += _decode_set(head, lines)
    if not result:
        raise head.error("there is no graph here: a line such as 'geo 1' must come first")
    return result


def _decode_set(head: TextLine, lines: Iterator[TextLine]) -> list[Specification]:
    count = head.integer(1, "the number of graphs")
    seed = head.integer(2, "the seed") if len(head.words) > 2 else 0
    if not 1 <= count <= MAX_GRAPHS:
        raise head.error(f"the number of graphs must be from 1 to {MAX_GRAPHS}, not {count}")
    model: FlatModel | Hierarchical | TransitStub
    match head.words[0].lower():
        case "geo":
            model = _decode_geo(_following(lines, head))
        case "hier":
            model = _decode_hier(_following(lines, head), lines)
        case "ts":
            model = _decode_ts(_following(lines, head), lines)
        case other:
            raise head.error(f"the kind of graph must be geo, hier or ts, not {other!r}")
    return [Specification(model, seed or DEFAULT_SEED, number) for number in range(count)]


def _following(lines: Iterator[TextLine], before: TextLine) -> TextLine:
    line = next(lines)
    if not line.words:
        raise line.error(
            f"the file ends here, but the parameters begun in line {before.number} must go on"
        )
    return line


def _decode_geo(line: TextLine) -> FlatModel:
    nodes, scale, method, (alpha, beta, gamma) = _decode_parms(line)
    try:
        return FLAT[method].from_gtitm(nodes, scale, alpha, beta, gamma)
    except TopologyError as error:
        raise line.error(str(error)) from None


def _decode_level(line: TextLine) -> Level:
    nodes, scale, method, (alpha, beta, gamma) = _decode_parms(line)
    try:
        return Level(nodes, cast(Method, method), alpha, beta, gamma, scale)
    except TopologyError as error:
        raise line.error(str(error)) from None


def _decode_parms(line: TextLine) -> tuple[int, int, str, list[float]]:
    if len(line.words) > 6:
        raise line.error(
            f"{line.words[6]!r} is one word too many: a line has nodes, scale, method, alpha, beta "
            "and gamma"
        )
    names = ("alpha", "beta", "gamma")
    nodes, scale = line.integer(0, "the number of nodes"), line.integer(1, "the scale")
    method = _decode_method(line)
    given = max(1, len(line.words) - 3)
    numbers = [line.real(3 + k, names[k]) for k in range(given)]
    return nodes, scale, method, numbers + [0.0] * (3 - given)


def _decode_method(line: TextLine) -> str:
    word = line.word(2, "the edge method").lower()
    numbered = {str(number): name for number, name in enumerate(NAMES, 1)}
    short = {name.replace("-", ""): name for name in NAMES}
    name = numbered.get(word) or short.get(word.replace("-", "").replace("_", ""))
    if name is None:
        known = ", ".join(f"{number} {name}" for number, name in numbered.items())
        raise line.error(f"the edge method {word!r} is unknown: it must be one of {known}")
    return name


def _decode_hier(line: TextLine, lines: Iterator[TextLine]) -> Hierarchical:
    count = line.integer(0, "the number of levels")
    connection = line.integer(1, "the connection method")
    if not 1 <= count <= MAX_LEVELS:
        raise line.error(f"the number of levels must be from 1 to {MAX_LEVELS}, not {count}")
    if not 0 <= connection < len(CONNECTIONS):
        known = ", ".join(f"{number} {name}" for number, name in enumerate(CONNECTIONS))
        raise line.error(f"the connection method must be one of {known}, not {connection}")
    threshold = line.integer(2, "the threshold") if len(line.words) > 2 else Hierarchical.threshold
    levels = tuple(_decode_level(_following(lines, line)) for _ in range(count))
    try:
        return Hierarchical(levels, CONNECTIONS[connection], threshold)
    except TopologyError as error:
        raise line.error(str(error)) from None


def _decode_ts(line: TextLine, lines: Iterator[TextLine]) -> TransitStub:
    fields = ("stubs per transit node", "extra transit-stub edges", "extra stub-stub edges")
    counts = [line.integer(k, f"the number of {field}") for k, field in enumerate(fields)]
    top, transit, stub = (_decode_level(_following(lines, line)) for _ in range(3))
    try:
        return TransitStub(top, transit, stub, *counts)
    except TopologyError as error:
        raise line.error(str(error)) from None
