"""The failure detector: who leads, who is suspected and from when, and the way around a bad link."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import Send
from testbed.protocols.groups.detector import POOR, Detector
from testbed.protocols.groups.messages import Cast, Report
from testbed.protocols.groups.passed import Passed
from testbed.protocols.groups.view import Member
from tests.protocols.groups.members import TIMING, A, B, C, D, group_at, members_of, view_of
from tests.world import MS

BEAT, PATIENCE = TIMING.heartbeat, TIMING.patience


def detector(me: int, now: int = 0, size: int = 4) -> Detector:
    """A member's detector, as it enters a view."""
    entered = Detector(me, TIMING)
    entered.enter(view_of(*range(size)), now)
    return entered


def alive(detector: Detector, now: int) -> list[int]:
    return [member.process for member in detector.alive(now)]


# who leads


def test_the_server_leads_and_sends_heartbeats_to_all_and_they_to_it() -> None:
    assert [detector(p).leads(0) for p in range(4)] == [True, False, False, False]
    assert detector(A).hubs(0) == (B, C, D)
    assert [detector(p).hubs(0) for p in (B, C, D)] == [(A,)] * 3


def test_the_server_suspects_whoever_it_has_not_heard_of_for_the_time_of_its_patience() -> None:
    a = detector(A)
    a.hear(B, 3 * BEAT)
    assert alive(a, PATIENCE - 1) == [A, B, C, D]
    assert alive(a, PATIENCE) == [A, B]
    assert alive(a, 3 * BEAT + PATIENCE) == [A]


def test_who_does_not_lead_suspects_only_those_before_the_leader() -> None:
    c = detector(C)
    c.hear(A, PATIENCE)
    assert alive(c, 2 * PATIENCE - 1) == [A, B, C, D]  # of B and D it expects to hear nothing
    c.hear(B, 2 * PATIENCE)
    assert alive(c, 2 * PATIENCE) == [B, C, D]
    assert not c.leads(2 * PATIENCE)


def test_the_next_in_line_counts_silence_from_when_it_could_expect_to_hear() -> None:
    b = detector(B)
    last = 2 * BEAT
    b.hear(A, last)
    assert not b.leads(last + PATIENCE - 1)
    assert b.leads(last + PATIENCE)
    assert alive(b, last + PATIENCE) == [B, C, D]  # they have reported to A up to now
    assert b.hubs(last + PATIENCE) == (A, C, D)
    b.hear(D, last + PATIENCE + 1)
    assert alive(b, last + 2 * PATIENCE) == [B, D]


def test_a_chain_of_leaders_is_suspected_one_after_the_other() -> None:
    d = detector(D)
    leaders = [alive(d, turn * PATIENCE)[0] for turn in range(5)]
    assert leaders == [A, B, C, D, D]
    hubs = [d.hubs(turn * PATIENCE) for turn in range(4)]
    assert hubs == [(A,), (A, B), (A, B, C), (A, B, C)]  # older ones may be alive


def test_who_is_heard_of_again_is_suspected_no_longer() -> None:
    b = detector(B)
    assert b.leads(PATIENCE)
    b.hear(A, PATIENCE + 1)
    assert not b.leads(PATIENCE + 1)


def test_a_stranger_is_not_a_member_for_being_heard_of() -> None:
    a = detector(A)
    a.hear(9, BEAT)
    assert alive(a, BEAT) == [A, B, C, D]
    assert 9 not in a.heard


@given(
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=20),
    st.integers(0, 60),
)
def test_there_is_always_a_leader_and_nobody_after_it_that_was_heard_of_is_suspected(
    me: int, heard: list[tuple[int, int]], beats: int
) -> None:
    known = detector(me)
    for process, beat in sorted(heard, key=lambda pair: pair[1]):
        if beat <= beats and process != me:
            known.hear(process, beat * BEAT)
    now = beats * BEAT
    left = alive(known, now)
    assert left == sorted(left)
    assert me in left
    assert left[0] <= me
    assert known.leads(now) == (left[0] == me)
    recent = {p for p, t in known.heard.items() if p != me and now - t < PATIENCE}
    assert recent <= set(left)  # if one of them is older than this process, it leads or follows
    assert me not in known.hubs(now)


@given(st.integers(1, 3), st.lists(st.integers(0, 20), max_size=10))
def test_whoever_hears_of_the_server_often_enough_does_not_suspect_it(
    me: int, pauses: list[int]
) -> None:
    known, now = detector(me), 0
    for pause in pauses:
        now += pause * (PATIENCE - 1) // 20
        assert known.alive(now)[0].process == A
        known.hear(A, now)


# restart, forsake, views


def test_who_was_stopped_itself_suspects_nobody_for_it() -> None:
    a = detector(A)
    late = 9 * PATIENCE
    assert alive(a, late) == [A]
    a.restart(late)
    assert alive(a, late + PATIENCE - 1) == [A, B, C, D]
    assert alive(a, late + PATIENCE) == [A]


def test_who_goes_on_alone_suspects_all_others_at_once() -> None:
    for me in range(4):
        known = detector(me)
        known.hear(A, 100 * PATIENCE)
        known.forsake(100 * PATIENCE)
        assert alive(known, 100 * PATIENCE) == [me]
        assert known.leads(100 * PATIENCE)


def test_a_view_begins_with_everybody_trusted_and_the_absent_away_since_it_was_first_known() -> (
    None
):
    a = detector(A, now=7)
    for now, number in ((10, 2), (20, 3)):
        a.enter(view_of(A, B, number=number, absent=members_of(D)), now)
        assert alive(a, now) == [A, B]
        assert a.away_since == {D: 10}
    a.enter(view_of(A, B, D, number=4), 30)
    assert a.away_since == {}


def test_who_is_away_is_owed_what_is_sent_to_it_until_it_was_gone_for_long() -> None:
    a = Detector(A, TIMING)
    below = Member(B, 0, frozenset({B, 5, 6}), 1, away=frozenset({6}))
    view = view_of(A, absent=members_of(D))
    a.enter(type(view)(view.id, (*view.members, below), view.absent), now=5)
    assert a.owed(5) == {6, D}  # also one who is absent in a group below
    assert a.owed(5 + TIMING.forget - 1) == {6, D}
    assert a.owed(5 + TIMING.forget) == frozenset()


# bad links


def quiet(me: int, peer: int, until: int) -> Detector:
    """A member that hears of all others at every heartbeat, but nothing directly of one."""
    known = detector(me)
    for now in range(BEAT, until + 1, BEAT):
        for other in range(4):
            if other not in (me, peer):
                known.hear(other, now)
    return known


def test_what_goes_to_one_not_heard_of_for_some_heartbeats_takes_a_detour_as_well() -> None:
    before, after = (POOR - 1) * BEAT, POOR * BEAT
    assert quiet(A, D, before).detour(D, before, ()) is None
    a = quiet(A, D, after)
    assert {a.detour(D, after, ()) for _ in range(4)} == {(B, True), (C, True)}  # by turns
    assert a.detour(B, after, ()) is None
    a.hear(D, after)
    assert a.detour(D, after, ()) is None


def test_only_a_link_on_which_heartbeats_are_due_is_taken_to_be_bad() -> None:
    b = detector(B)
    b.hear(A, POOR * BEAT)
    assert b.detour(D, POOR * BEAT, ()) is None
    assert b.detour(A, POOR * BEAT, ()) is None
    assert quiet(B, A, POOR * BEAT).detour(A, POOR * BEAT, ()) in ((C, True), (D, True))


def test_who_does_not_answer_a_proposal_is_asked_by_a_detour_as_well() -> None:
    a = detector(A)
    assert a.detour(D, 0, unanswered=[D]) in ((B, True), (C, True))
    assert a.detour(9, 0, unanswered=[9]) is None  # no member


def test_an_answer_takes_the_way_by_which_the_question_came_for_a_while() -> None:
    d = detector(D)
    d.hear(A, BEAT, by_way_of=C, unheard=True)
    assert d.detour(A, BEAT, ()) == (C, False)
    assert d.detour(A, (1 + POOR) * BEAT - 1, ()) == (C, True)
    d.hear(A, (1 + POOR) * BEAT)
    assert d.detour(A, (1 + POOR) * BEAT, ()) is None


def test_two_who_hear_each_other_again_do_not_answer_by_detours_for_ever() -> None:
    a, d = quiet(A, D, POOR * BEAT), quiet(D, A, POOR * BEAT)
    for now in range(POOR * BEAT, 4 * POOR * BEAT, BEAT):
        ways = a.detour(D, now, ()), d.detour(A, now, ())
        for known, other, way in ((d, A, ways[0]), (a, D, ways[1])):
            known.hear(other, now)
            if way is not None:
                known.hear(other, now, *way)
    assert ways == (None, None)


def test_between_two_there_is_no_detour() -> None:
    a = detector(A, size=2)
    assert a.detour(B, PATIENCE, [B]) is None


def test_who_is_heard_of_by_a_detour_only_is_not_suspected() -> None:
    a = detector(A, size=3)
    for now in range(BEAT, 4 * PATIENCE, BEAT):
        a.hear(B, now)
        a.hear(C, now, by_way_of=B)
    assert alive(a, 4 * PATIENCE - BEAT) == [A, B, C]


# what a group does with it


def test_a_member_passes_on_what_is_for_another_and_the_answer_goes_the_same_way() -> None:
    view = view_of(A, B, C)
    a, b, c = (group_at(p, view) for p in range(3))
    for now in range(1, POOR):
        a.detector.hear(B, now * MS)
        list(a.tick(now * MS, lambda cast: True))
    sent = [e for e in a.tick(POOR * MS, lambda cast: True) if isinstance(e, Send)]
    detours = [e for e in sent if isinstance(e.message, Passed)]
    assert [(e.peers, e.message.sender, e.message.to) for e in detours] == [((B,), A, C)]  # type: ignore[attr-defined]
    on = [e for e in b.receive(detours[0].message, A, POOR * MS) if isinstance(e, Send)]
    assert [e.peers for e in on] == [(C,)]
    list(c.receive(on[0].message, B, POOR * MS))
    assert c.detector.heard[A] == POOR * MS
    assert c.detector.direct[A] == 0
    answers = [e for e in c.tick((POOR + 1) * MS, lambda cast: True) if isinstance(e, Send)]
    assert (B,) in [e.peers for e in answers if isinstance(e.message, Passed)]
    assert (A,) in [e.peers for e in answers if isinstance(e.message, Report)]


def test_what_is_for_one_who_is_no_member_is_not_passed_on() -> None:
    b = group_at(B, view_of(A, B))
    stray = Passed(A, 0, sender=A, to=C, inner=Report(
        A, 0, view=view_of(A, B).id, promised=0, delivered=(0, 0), released=(0, 0, 0)
    ))  # fmt: skip
    assert list(b.receive(stray, A, 1)) == []


def test_a_cast_that_another_passes_on_does_not_prove_that_its_sender_is_alive() -> None:
    view = view_of(A, B, C)
    c = group_at(C, view)
    cast = Cast(A, 1, view=view.id, vector=(1, 0, 0))
    list(c.receive(Passed(B, 0, sender=A, to=C, inner=cast), B, 2 * MS))
    assert c.kept.has_seen(cast)
    assert c.detector.heard[A] == 0


@pytest.mark.parametrize("me", [A, C])
def test_a_stopped_process_that_goes_on_suspects_nobody(me: int) -> None:
    group = group_at(me, view_of(A, B, C))
    list(group.tick(1 * MS, lambda cast: True))
    list(group.tick(100 * MS, lambda cast: True))
    assert group.state == "member"
    assert group.detector.since == 100 * MS
