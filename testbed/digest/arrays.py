"""Arrow tables and NumPy arrays, and the few ways in which the digest goes from one to the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
DIGIT = 16  # bits, for which NumPy has a radix sort


def integers(table: pa.Table, name: str) -> Integers:
    """A column without nulls."""
    return np.asarray(table[name].to_numpy(), np.int64)


def with_columns(table: pa.Table, **columns: Any) -> pa.Table:
    """The table with more columns, or with others in place of those of the same name."""
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **columns})


def filled(table: pa.Table, value: Any, *names: str) -> pa.Table:
    """The table with a value in place of the nulls of some columns."""
    return with_columns(table, **{name: pc.fill_null(table[name], value) for name in names})


def grouped(table: pa.Table, keys: Sequence[str], **columns: tuple[str, str]) -> pa.Table:
    """A row for each group; each column is a function of a column, as Arrow calls it."""
    found = table.group_by(list(keys), use_threads=False).aggregate([*columns.values()])
    names = [f"{column}_{function}" for column, function in columns.values()]
    return found.select([*keys, *names]).rename_columns([*keys, *columns])


def joined(left: pa.Table, right: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Each row of the left table with the one of the right table that has the same keys, or nulls."""
    return left.join(right, list(keys), join_type="left outer", use_threads=False)


def counted(values: Any) -> pa.Table:
    """How often each value occurs."""
    value, count = np.unique(values, return_counts=True)
    return pa.table({"value": pa.array(value, pa.int64()), "count": count})


def runs_of(*keys: NDArray[Any]) -> Integers:
    """Where each run of equal keys begins in sorted arrays, and at last where they end."""
    size = len(keys[0])
    changes = np.arange(size) == 0
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.append(np.flatnonzero(changes), size)


def numbered(*keys: NDArray[Any]) -> Integers:
    """A number from 0 for each combination of keys that are sorted, in their order."""
    starts = runs_of(*keys)
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def latest(flags: Flags, starts: Integers) -> Integers:
    """For each place in sorted groups the last flagged one up to there in its group, or -1."""
    found = np.maximum.accumulate(np.where(flags, np.arange(len(flags)), -1))
    first = np.repeat(starts[:-1], np.diff(starts))
    return np.where(found >= first, found, -1)


def order_of(*keys: NDArray[Any]) -> Integers:
    """An order by keys, the first of which counts most; rows with the same keys stay as they are.

    Keys are taken together and sorted digit by digit, from the last, which is several times as fast
    as to compare them: times, nodes and numbers of a bucket have few digits.
    """
    order = np.arange(len(keys[0]))
    digit, filled = np.zeros(len(order), np.uint64), 0
    given = len(keys) - ascends(keys[-1]) if len(order) else 0
    for key in reversed(keys[:given]):
        rest = np.subtract(key, key.min(), dtype=np.int64).view(np.uint64)
        width = int(rest.max()).bit_length()
        while width:
            digit |= rest << np.uint64(filled)
            taken = min(DIGIT - filled, width)
            rest >>= np.uint64(taken)
            width, filled = width - taken, filled + taken
            if filled == DIGIT:
                order = _by_digit(order, digit)
                digit, filled = np.zeros_like(digit), 0
    return _by_digit(order, digit) if filled else order


def ascends(key: NDArray[Any]) -> bool:
    """Whether rows are in the order of a key."""
    return bool((key[1:] >= key[:-1]).all())


def _by_digit(order: Integers, digit: NDArray[np.uint64]) -> Integers:
    low = digit.astype(np.uint16)  # what is above it belongs to the next
    return order[np.argsort(low[order], kind="stable")]
