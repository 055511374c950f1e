"""Epochs: who knows which, and for which membership a message is."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols.groups.detector import Timing
from testbed.protocols.groups.epochs import (
    INCARNATION_BITS,
    Agreed,
    Epochs,
    Pairs,
    greatest,
    is_member,
    left,
    of,
)
from testbed.protocols.groups.group import Group
from testbed.protocols.groups.messages import Cast
from testbed.protocols.groups.view import Member, View, ViewId

A, B, C = 0, 1, 2
TIMING = Timing(20, 70, 210, 60_000, None)

numbers = st.integers(1, 9)
known = st.dictionaries(st.integers(0, 5), numbers).map(lambda d: tuple(sorted(d.items())))


def test_a_process_that_leaves_and_comes_back_has_another_epoch_each_time() -> None:
    mine, seen = Epochs(A, 6), [0]
    for _ in range(3):
        mine.come_back()
        seen += [left(seen[-1]), mine.of(A)]
    assert seen == sorted(set(seen))
    assert [is_member(epoch) for epoch in seen] == [True, False] * 3 + [True]


def test_a_restarted_process_has_a_greater_epoch_although_it_remembers_none() -> None:
    before = Epochs(A, 6, 1)
    before.come_back()
    assert Epochs(A, 6, 2).of(A) > before.of(A) > Epochs(A, 6, 1).of(A) == 1 << INCARNATION_BITS


def test_only_the_process_itself_says_in_which_epoch_it_is() -> None:
    mine = Epochs(A, 6)
    mine.learn(((A, 7), (B, 2)))
    assert (mine.of(A), mine.of(B), mine.of(C)) == (0, 2, 0)
    mine.learn(((B, 1), (C, 4)))
    assert mine.pairs == ((B, 2), (C, 4))
    assert mine.only({C, 5}) == ((C, 4),)


def test_a_message_is_for_the_epoch_that_its_sender_knew() -> None:
    cast = Cast(B, 1, dests=frozenset({A}), epochs=((A, 2),))
    assert [cast.is_due(A, epoch) for epoch in (0, 1, 2, 4)] == [False, False, True, False]
    assert not cast.is_due(C, 0)
    assert Cast(B, 2).is_due(C, 0)


def test_a_message_leaves_a_group_that_has_a_destination_in_an_older_epoch_only() -> None:
    cast = Cast(B, 1, dests=frozenset({A}), epochs=((A, 2), (C, 4)))
    assert [cast.leaves({A, C}, ((A, epoch), (C, 0))) for epoch in (0, 1, 2, 4)] == [
        *(True, True),
        *(False, False),
    ]
    assert cast.leaves({C}, ((A, 2),))
    assert not Cast(B, 2, dests=frozenset({A})).leaves({A})


def test_a_view_knows_in_which_epoch_who_is_below_it() -> None:
    below = Member(A, 0, frozenset({A, C}), 5, epochs=((A, 2), (B, 4)))
    gone = Member(B, 0, frozenset({B}), 6, epochs=((A, 6), (B, 2)))
    assert View(ViewId(1, A), (below,), (gone,)).epochs == ((A, 2), (B, 2))


def test_one_that_has_come_back_is_below_nobody_who_knew_it_only_before() -> None:
    members = tuple(Member(p, 0, frozenset({p}), p) for p in (A, B))
    group = Group(0, members[0], TIMING, (), view=View(ViewId(1, A), members), epochs=Epochs(A, 2))
    assert group.places.unknown() == set()
    group.epochs.learn(((B, 1),))
    assert group.places.unknown() == set()
    group.epochs.learn(((B, 2),))
    assert group.places.unknown() == {B}
    group.view = View(ViewId(2, A), (members[0], members[1]._replace(epochs=((B, 2),))))
    assert group.places.unknown() == set()


def test_who_has_left_is_no_member_until_it_is_back() -> None:
    mine = Epochs(A, 3)
    mine.learn(((B, 1),))
    assert mine.members == {A, C}
    mine.learn(((B, 2),))
    assert mine.members == {A, B, C}


@given(known, known)
def test_who_learns_what_another_knows_knows_what_both_knew(one: Pairs, other: Pairs) -> None:
    process = Epochs(9, 10)
    process.learn(one)
    process.learn(other)
    assert process.pairs == greatest(one, other)
    assert all(of(process.pairs, p) == max(of(one, p), of(other, p)) for p in range(6))


@given(known, known)
def test_in_a_view_only_what_differs_from_what_was_agreed_on_travels(
    one: Pairs, all: Pairs
) -> None:
    agreed = Agreed(all)
    differ = agreed.without(one)
    assert agreed.complete(differ) == one or (not differ and one == all)
    assert {p for p, _ in differ} == {p for p in range(6) if of(one, p) != of(all, p)}
