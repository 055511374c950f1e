"""What a process keeps of a group's messages, and for whom."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import MessageId
from testbed.protocols.base import SEQUENCE_BITS
from testbed.protocols.groups.messages import Cast
from testbed.protocols.groups.stability import Stability
from tests.protocols.groups.members import A, B, C, D

NOBODY: frozenset[int] = frozenset()


def to(source: int, seq: int, *dests: int) -> Cast:
    return Cast(source, seq, dests=frozenset(dests))


def test_what_is_stable_is_forgotten_and_what_is_for_one_who_is_away_is_archived() -> None:
    kept = Stability()
    for_both, for_b, for_all = to(A, 1, B, D), to(A, 2, B), Cast(A, 3)
    for cast in (for_both, for_b, for_all):
        assert not kept.has_seen(cast)
        kept.record(cast)
        assert not kept.is_stable(cast)
    kept.settle([for_both.id, for_b.id], frozenset({D}))
    assert list(kept.history) == [(A, 3)]
    assert list(kept.archive) == [(A, 1)]
    assert all(map(kept.is_stable, (for_both, for_b)))  # what is only owed holds up nobody
    assert (kept.find(for_both.id), kept.find(for_b.id)) == (for_both, None)
    kept.settle([for_all.id], frozenset({D}))
    assert list(kept.archive.values()) == [for_both, for_all]
    assert not kept.history


def test_the_archive_is_emptied_of_what_is_for_those_who_are_back_or_count_as_crashed() -> None:
    kept = Stability()
    casts = [to(A, 1, C), to(A, 2, D), to(A, 3, C, D)]
    for cast in casts:
        kept.record(cast)
    kept.settle([cast.id for cast in casts], frozenset({C, D}))
    assert list(kept.archive) == [(A, 1), (A, 2), (A, 3)]
    kept.settle([], frozenset({D}))
    assert list(kept.archive) == [(A, 2), (A, 3)]
    kept.settle([], NOBODY)
    assert not kept.archive
    assert all(map(kept.has_seen, casts))


def test_each_incarnation_has_its_own_numbers() -> None:
    kept = Stability()
    again = Cast(A, (1 << SEQUENCE_BITS) + 1)
    kept.record(Cast(A, 7))
    assert kept.has_seen(Cast(A, 3))
    assert not kept.has_seen(again)
    kept.record(again)
    assert set(kept.names()) == {MessageId(A, 7), again.id}


def test_only_what_is_new_of_what_was_carried_over_is_delivered() -> None:
    kept = Stability()
    old, stable, fresh = Cast(A, 1), Cast(C, 1), Cast(B, 1)
    for cast in (old, stable):
        kept.record(cast)
    kept.settle([stable.id], frozenset({D}))
    assert kept.take_over([old, stable, fresh], [MessageId(D, 4)]) == [fresh]
    assert list(kept.history) == [old.id, stable.id, fresh.id]
    assert not kept.archive  # it is for a member again
    assert kept.has_seen(Cast(D, 4))
    assert not kept.has_seen(Cast(D, 5))


def test_several_messages_of_one_sender_can_be_new() -> None:
    kept = Stability()
    casts = [Cast(A, 1), Cast(A, 2)]
    assert kept.take_over(casts, [MessageId(A, 2)]) == casts


processes = st.integers(0, 3)
casts = st.builds(Cast, processes, st.integers(1, 30), dests=st.none() | st.frozensets(processes))


@given(st.lists(casts, max_size=12, unique_by=lambda cast: cast.id), st.data())
def test_a_message_is_in_one_place_only_and_archived_exactly_if_it_is_owed(
    had: list[Cast], data: st.DataObject
) -> None:
    kept = Stability()
    for cast in had:
        kept.record(cast)
    settled: set[MessageId] = set()
    owed: frozenset[int] = frozenset()
    owed_ever: frozenset[int] | None = None
    for _ in range(3):
        owed = data.draw(st.frozensets(processes))
        owed_ever = owed if owed_ever is None else owed_ever & owed
        some = data.draw(st.lists(st.sampled_from(had), unique=True)) if had else []
        kept.settle([cast.id for cast in some], owed)
        settled |= {cast.id for cast in some}
        assert kept.history.keys().isdisjoint(kept.archive)
        assert kept.history.keys() == {cast.id for cast in had} - settled
        assert all(cast.is_for(owed) for cast in kept.archive.values())
    assert owed_ever is not None
    due = {cast.id for cast in had if cast.id in settled and cast.is_for(owed_ever)}
    assert due <= kept.archive.keys()
