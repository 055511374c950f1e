"""Arrow tables and NumPy arrays, and the few ways in which the digest goes from one to the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


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


def latest(flags: Flags, starts: Integers) -> Integers:
    """For each place in sorted groups the last flagged one up to there in its group, or -1."""
    found = np.maximum.accumulate(np.where(flags, np.arange(len(flags)), -1))
    first = np.repeat(starts[:-1], np.diff(starts))
    return np.where(found >= first, found, -1)
