"""Messages as packets: sizes that can be worked out by hand."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.packets.framing import flows_of, frames


def test_a_small_message_is_one_frame() -> None:
    assert frames(32, 1500, "udp") == (32 + 8 + 20 + 14,)
    assert frames(32, 1500, "bare") == (32,)


def test_the_largest_unfragmented_message_and_the_next() -> None:
    assert frames(1472, 1500, "udp") == (1514,)
    assert frames(1473, 1500, "udp") == (1514, 35)
    assert frames(1500, 1500, "bare") == (1500,)
    assert frames(1501, 1500, "bare") == (1500, 1)


def test_a_vector_of_600_entries_is_two_fragments() -> None:
    assert frames(32 + 4 * 600, 1500, "udp") == (1514, 34 + 32 + 2400 + 8 - 1480)


@given(size=st.integers(32, 65_507), mtu=st.integers(68, 9000))
def test_fragments_hold_the_message_and_fit_the_link(size: int, mtu: int) -> None:
    sizes = frames(size, mtu, "udp")
    assert sum(sizes) == size + 8 + 34 * len(sizes)
    assert all(s - 34 > 0 and s - 14 <= mtu for s in sizes)
    assert all((s - 34) % 8 == 0 for s in sizes[:-1])
    assert len(sizes) == 1 or sizes[0] - 14 > mtu - 8


def test_fragments_are_flows_of_their_own_and_what_no_datagram_carries_makes_none() -> None:
    assert flows_of(1472, 1500) == (1,)
    assert flows_of(1473, 1500) == (1, 1473)
    assert flows_of(70_000, 1500) == (1, 65_507)
