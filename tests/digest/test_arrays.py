"""Orders and numbers of rows, against what NumPy finds in its own way."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from testbed.digest.arrays import numbered, order_of


@pytest.mark.parametrize("size", [0, 1, 2, 50, 70_000])
def test_an_order_is_that_of_comparing_keys_one_by_one(size: int) -> None:
    random = np.random.default_rng(size)
    widths = [(1,), (0, 5), (62, 62), (1, 33, 16), (16, 16, 1, 40), (3, 0, 63, 3)]
    for bits in widths:
        keys: list[NDArray[Any]] = [random.random(size) < 0.5]
        keys += [random.integers(-(1 << b) // 2, (1 << b) // 2 + 1, size) for b in bits]
        for given in (keys, keys[::-1], [*keys, np.arange(size) // 3]):
            assert order_of(*given).tolist() == np.lexsort(given[::-1]).tolist()


def test_narrow_types_are_sorted_like_wide_ones() -> None:
    random = np.random.default_rng(1)
    for kind in (np.uint16, np.int16, np.int32, np.bool_):
        key = random.integers(0, 1 << 16, 3000).astype(kind)
        assert (key[order_of(key)] == np.sort(key)).all()


def test_numbers_begin_anew_with_every_change_of_a_key() -> None:
    assert numbered(np.array([1, 1, 2, 2, 2]), np.array([0, 0, 0, 7, 7])).tolist() == [
        0,
        0,
        1,
        2,
        2,
    ]
    assert numbered(np.zeros(0)).tolist() == []
