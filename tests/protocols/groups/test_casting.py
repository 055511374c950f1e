"""Causal broadcast within a view: its order, what is sent again, what is stable, what is kept."""

from dataclasses import replace

from testbed.protocols import Deliver, Send
from testbed.protocols.groups.casting import Casting, Status
from testbed.protocols.groups.messages import Cast, Report
from testbed.protocols.groups.view import FIRST, ViewId
from tests.protocols.groups.members import A, B, C, D, group_at, members_of, view_of
from tests.world import MS


def casting(me: int, size: int = 3, carried: tuple[Cast, ...] = ()) -> Casting:
    return Casting(view_of(*range(size), number=1), me, carried)


def cast_from(source: int, *vector: int) -> Cast:
    return Cast(source, vector[source], view=ViewId(1, A), vector=vector)


def said(source: int, status: Status, leads: bool = False) -> Report:
    """A report with this status."""
    _, delivered, released, everywhere = status
    return Report(
        source, 0, view=ViewId(1, A), promised=0,
        delivered=delivered, released=released, leads=leads, everywhere=everywhere,
    )  # fmt: skip


def test_a_broadcast_waits_for_what_it_comes_after() -> None:
    c = casting(C)
    first, answer = cast_from(A, 1, 0, 0), cast_from(B, 1, 1, 0)
    assert c.hold(answer, B)
    assert c.next() is None
    assert c.hold(first, A)
    assert [c.next(), c.next(), c.next()] == [(first, False), (answer, False), None]
    assert not c.hold(first, A)


def test_of_many_that_a_member_lacks_those_are_sent_again_that_it_can_deliver_first() -> None:
    a, b = casting(A), casting(B)
    for number in range(40):  # each of A follows one of C
        before = cast_from(C, number, 0, number + 1)
        a.hold(before, C)
        assert a.next() == (before, False)
        a.send(cast_from(A, number + 1, 0, number + 1), now=0)
    a.note_vector(B, (0, 0, 0))
    late = a.missing(B, now=10, pause=10, leads=True)
    assert len(late) == 32
    for caster, cast in late:
        b.hold(cast, caster)
        assert b.next() == (cast, False)


def test_a_broadcast_that_was_seen_before_is_said_to_be_and_counts_as_delivered() -> None:
    c = casting(C)
    c.kept.see([cast_from(A, 1, 0, 0).id])
    first, second = cast_from(A, 1, 0, 0), cast_from(A, 2, 0, 0)
    c.hold(second, A)
    c.hold(first, A)
    assert [c.next(), c.next()] == [(first, True), (second, False)]
    assert c.progress() == (2, 0, 0)


def test_a_message_is_stable_when_all_have_released_it_from_the_first_on() -> None:
    c = casting(C)
    early, late = cast_from(A, 1, 0, 0), cast_from(A, 2, 0, 0)
    for cast in (early, late):
        c.hold(cast, A)
        c.next()
    assert not c.everywhere(early.id)
    c.note_vector(B, (2, 0, 0))
    c.note_vector(A, (2, 0, 0))
    assert c.everywhere(late.id)
    for peer in (A, B):
        c.note(peer, said(peer, Status((), (2, 0, 0), (0, 2, 0, 0))))
    assert c.released_by_others(late.id)
    c.release(lambda cast: cast is late)  # the layer above still needs the first
    assert list(c.forget()) == []
    c.release(lambda cast: True)
    assert list(c.forget()) == [early.id, late.id]


def test_the_leader_tells_the_others_what_all_have_delivered_and_released() -> None:
    a, b, c = map(casting, range(3))
    cast, _ = a.send(cast_from(A, 1, 0, 0), now=0)
    for member in (b, c):
        member.hold(cast, A)
        member.next()
        member.release(lambda cast: True)
    assert list(a.reports((B, C), leads=True, waiting=None)) == [
        Status((B, C), (1, 0, 0), (0, 0, 0, 0), None)  # of B and C it knows nothing
    ]
    for peer, member in ((B, b), (C, c)):
        assert not member.complete()
        [status] = member.reports((A,), leads=False, waiting=None)
        assert status == Status((A,), (1, 0, 0), (0, 1, 0, 0))
        a.note(peer, said(peer, status))
    a.release(lambda cast: True)
    [status] = a.reports((B, C), leads=True, waiting=None)
    assert status == Status((B, C), (1, 0, 0), (0, 1, 0, 0), everywhere=(1, 0, 0))
    assert not b.everywhere(cast.id)
    b.note(A, said(A, status, leads=True))
    assert b.complete()  # though B has not heard of C
    assert b.everywhere(cast.id)
    assert list(b.forget()) == list(a.forget()) == [cast.id]
    assert list(c.forget()) == []


def test_a_report_that_somebody_waits_for_goes_to_those_who_wait() -> None:
    c = casting(C)
    assert [status.peers for status in c.reports((A,), leads=False, waiting={B})] == [(B,)]
    assert list(c.reports((A,), leads=False, waiting=())) == []
    assert list(c.reports((), leads=False, waiting=None)) == []


def test_a_broadcast_is_sent_again_to_whoever_lacks_it_when_it_had_time_to_arrive() -> None:
    a = casting(A)
    cast, copies = a.send(cast_from(A, 1, 0, 0), now=0)
    assert copies == [((B, C), cast)]
    a.note_vector(B, (0, 0, 0))
    assert a.missing(B, now=1, pause=10) == []
    assert a.missing(B, now=10, pause=10) == [(A, cast)]
    assert a.missing(B, now=15, pause=10) == []
    a.note_vector(B, (1, 0, 0))
    assert a.missing(B, now=30, pause=10) == []


def with_a_cast_of_b(me: int) -> tuple[Casting, Cast]:
    """A member of four that has delivered a broadcast of B, and knows that D lacks it."""
    casting_ = casting(me, size=4)
    cast = cast_from(B, 0, 1, 0, 0)
    casting_.hold(cast, B)
    casting_.next(now=0)
    casting_.note_vector(D, (0, 0, 0, 0))
    return casting_, cast


def test_the_leader_also_sends_again_what_others_have_cast() -> None:
    a, cast = with_a_cast_of_b(A)
    assert a.missing(D, now=10, pause=10, leads=False) == []
    assert a.missing(D, now=10, pause=10, leads=True) == [(B, cast)]
    c, _ = with_a_cast_of_b(C)
    assert c.missing(D, now=10, pause=10, leads=False) == []


def test_what_the_leader_lacks_all_others_send_it_by_turns() -> None:
    senders = []
    for turn in range(1, 5):
        for me in (A, C):
            member, _ = with_a_cast_of_b(me)
            if member.missing(D, now=10 * turn, pause=10, is_leader=True):
                senders.append(me)
    assert sorted(senders) == [A, C]  # each once in a round; B itself at any time


def test_one_who_lacks_much_is_sent_some_of_it_at_a_time() -> None:
    a = casting(A)
    for number in range(1, 101):
        a.send(cast_from(A, number, 0, 0), now=0)
    a.note_vector(B, (10, 0, 0))
    again = [cast.seq for _, cast in a.missing(B, now=10, pause=10)]
    assert again == list(range(11, 11 + len(again)))
    assert 10 < len(again) < 50


def test_what_is_carried_over_is_kept_in_a_slot_of_its_own() -> None:
    old = (Cast(B, 1), Cast(C, 5))
    a = casting(A, carried=old)
    assert not a.everywhere(old[0].id)
    for peer in (B, C):
        a.note(peer, said(peer, Status((), (0, 0, 0), (peer, 0, 0, 0))))
    assert a.everywhere(old[1].id)  # they are in the view, so they have it
    a.release(lambda cast: True)
    assert list(a.forget()) == [old[0].id]


# what a group does with it


def test_a_message_for_one_who_is_absent_is_kept_until_it_was_gone_for_long() -> None:
    a = group_at(A, view_of(A, absent=members_of(B)))
    a.detector.away_since = {B: 0}
    list(a.cast(Cast(A, 1, dests=frozenset({B})), 0))
    list(a.cast(Cast(A, 2, dests=frozenset({A})), 0))
    for ms in range(1, 499):
        list(a.tick(ms * MS, lambda cast: True))
        assert list(a.kept.archive) == [(A, 1)]
        assert not a.history  # what is kept for B alone does not hold up the group
    assert a.kept.find(Cast(A, 1).id) is not None
    list(a.tick(501 * MS, lambda cast: True))
    assert not a.history
    assert not a.kept.archive


def test_what_is_broadcast_in_another_view_is_not_delivered() -> None:
    view = view_of(A, B)
    b = group_at(B, view)
    stale = Cast(A, 1, view=ViewId(FIRST - 1, A), vector=(1, 0))
    assert not [e for e in b.receive(stale, A, 0) if isinstance(e, Deliver)]
    good = replace(stale, view=view.id)
    assert [e for e in b.receive(good, A, 0) if isinstance(e, Deliver)]
    odd = replace(stale, view=view.id, vector=(2, 0, 0))
    assert not [e for e in b.receive(odd, A, 0) if isinstance(e, Deliver | Send)]
