"""Messages that travel in datagrams which are named by others go the way of these."""

import pyarrow as pa

from testbed.digest.carried import carrying


def test_what_a_datagram_carries_has_its_hops_until_the_identification_is_used_again() -> None:
    carried = pa.table(
        {
            "at": [10, 10, 500, 10],
            "sender": [1, 1, 1, 1],
            "receiver": pa.array([2, 2, 2, None], pa.int32()),
            "copy": [7, 7, 7, 7],
            "source": [3, 4, 5, 6],
            "seq": [1, 2, 3, 4],
        }
    )
    hops = pa.table(
        {
            "queued": [10, 40, 9, 600, 10, 20],
            "sender": [1, 1, 1, 1, 1, 1],
            "receiver": pa.array([2, 2, 2, 2, None, 2], pa.int32()),
            "copy": [7, 7, 7, 7, 7, 8],
            "source": [1, 1, 1, 1, 1, 1],
            "seq": [0, 0, 0, 0, 0, 9],
            "bytes": [100, 101, 102, 103, 104, 105],
        }
    )
    found = carrying(hops, carried)
    rows = zip(*(found[name].to_pylist() for name in ("bytes", "source", "seq")), strict=True)
    assert sorted(rows) == [
        *((100, 3, 1), (100, 4, 2), (101, 3, 1), (101, 4, 2)),
        (103, 5, 3),
        (104, 6, 4),
    ]
    assert found["receiver"].null_count == 1
    assert len(carrying(hops, carried.slice(0, 0))) == 0
