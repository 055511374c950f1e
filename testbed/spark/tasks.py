"""Work spread over all the cores that Spark has: any function over any list of pieces."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from testbed.spark.session import context

PIECES_PER_CORE = 4  # in one job, whose results come all at once

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def spread(
    function: Callable[[Piece], Result], pieces: Sequence[Piece], master: str
) -> Iterator[Result]:
    """The function's result for each piece, in order; a task each."""
    with context(master) as spark:
        many = PIECES_PER_CORE * spark.defaultParallelism
        for start in range(0, len(pieces), many):
            some = pieces[start : start + many]
            yield from spark.parallelize(some, len(some)).map(function).collect()
