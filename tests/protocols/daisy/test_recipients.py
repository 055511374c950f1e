"""Inside a group to recipients only: the flow by hand, and what each rule is for."""

from dataclasses import replace
from typing import Any

import pytest

from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.matrices import Matrices
from testbed.protocols.groups.agreed import Flushed, HeldCast, Label
from testbed.protocols.groups.messages import Cast, Report
from testbed.protocols.groups.view import Member, View, ViewId
from tests.protocols.daisy.daisies import RECIPIENTS, TOP, Daisies, lose_casts, watch

A, B, C, D = range(4)


def flowers(processes: int, k: int = 1) -> Daisies:
    return Daisies(processes, settings=replace(RECIPIENTS, resilience=k))


# by hand: one group of four


def group_of_four(k: int, top: bool = True) -> list[Matrices]:
    members = tuple(Member(p, 0, frozenset({p}), p) for p in range(4))
    return [Matrices(View(ViewId(7, A), members), p, (), k=k, top=top) for p in range(4)]


def message(source: int, seq: int, *to: int) -> Cast:
    return Cast(source, seq, dests=frozenset(to))


def report(group: list[Matrices], sender: int) -> None:
    """A member tells all others what it has received and released."""
    casting = group[sender]
    said = Report(
        sender,
        0,
        view=casting.id,
        promised=0,
        delivered=casting.progress(),
        released=tuple(casting.released[sender]),
    )
    for peer in range(4):
        if peer != sender:
            group[peer].note(sender, said)


def arrive(casting: Matrices, cast: Cast, sender: int) -> bool:
    casting.note_vector(sender, cast.vector)
    return casting.hold(cast, sender)


def test_a_cast_goes_to_its_destinations_with_a_matrix_and_its_number() -> None:
    a, b, c, _ = group_of_four(k=1)
    m1, copies = a.send(message(A, 1, B), now=0)
    assert [peers for peers, _ in copies] == [(B,)]
    assert m1.vector == (0, 1, 0, 0, *[0] * 12, 1)
    m2, copies = a.send(message(A, 2, C, A), now=0)
    assert [peers for peers, _ in copies] == [(C,)]
    assert m2.vector == (0, 1, 1, 0, *[0] * 12, 2)
    assert arrive(b, m1, A)
    assert b.next() == (m1, False)  # A and B have it: nothing more is asked for with k = 1
    assert not arrive(b, m1, A)
    m3, copies = b.send(message(B, 1, C), now=0)
    assert [peers for peers, _ in copies] == [(C,)]
    assert m3.vector == (1, 1, 0, 0, 0, 0, 1, 0, *[0] * 8, 1)  # m1 was firm, says the diagonal
    assert arrive(c, m3, B)
    assert c.next() == (m3, False)  # nothing that was sent to C comes before it


def test_a_cast_waits_for_what_was_sent_to_its_destination_before() -> None:
    a, b, c, _ = group_of_four(k=0)
    m1, _ = a.send(message(A, 1, C), now=0)
    m2, _ = a.send(message(A, 2, B), now=0)
    arrive(b, m2, A)
    assert b.next() == (m2, False)
    m3, _ = b.send(message(B, 1, C), now=0)
    arrive(c, m3, B)
    assert not c.deliverable_now(m3, B)
    assert c.next() is None
    arrive(c, m1, A)
    assert [c.next(), c.next(), c.next()] == [(m1, False), (m3, False), None]


def test_nothing_is_handed_on_before_all_that_its_sender_cast_earlier_is_firm() -> None:
    group = a, b, c, _ = group_of_four(k=1)
    m1, _ = a.send(message(A, 1, B), now=0)
    m2, _ = a.send(message(A, 2, C), now=0)
    arrive(c, m2, A)
    report(group, C)
    assert a.firm[A] == 0  # of m1 nobody has said anything
    assert c.next() is None
    arrive(b, m1, A)
    assert b.news
    report(group, B)
    assert a.firm[A] == 2
    assert a.news  # C waits to hear that
    assert c.next() is None
    report(group, A)
    assert c.next() == (m2, False)


def test_with_two_others_to_hold_it_a_witness_gets_a_copy_and_all_wait_for_its_report() -> None:
    group = a, b, c, d = group_of_four(k=2)
    m1, copies = c.send(message(C, 1, B), now=0)
    assert [peers for peers, _ in copies] == [(B, D)]  # D is next after C
    assert m1.vector == (*[0] * 8, 0, 1, 0, 1, *[0] * 4, 1)
    arrive(b, m1, C)
    assert b.next() is None
    assert not c.everywhere(m1.id)
    report(group, B)
    assert not c.everywhere(m1.id)
    arrive(d, m1, C)
    assert d.next() == (m1, False)  # of B it knows
    report(group, D)
    assert b.next() == (m1, False)
    assert c.everywhere(m1.id)  # may be relayed
    assert a.firm[C] == 0
    report(group, C)
    assert a.firm[C] == 1


def test_the_server_gets_what_leaves_the_group_and_all_get_what_nobody_answers_for() -> None:
    inner, top = group_of_four(k=1, top=False), group_of_four(k=1)
    assert inner[C].recipients(message(C, 1, D), C) == [D]
    assert inner[C].recipients(message(C, 1, D, 9), C) == [A, D]
    assert inner[A].recipients(message(A, 1, 9), A) == [B]  # a witness
    assert top[C].recipients(message(C, 1, 9), C) == [A, B, D]


def test_a_cast_is_kept_by_those_who_have_it_until_all_of_them_have_released_it() -> None:
    group = a, b, _, _ = group_of_four(k=1)
    m1, _ = a.send(message(A, 1, B), now=0)
    arrive(b, m1, A)
    assert b.next() == (m1, False)
    for sender in (B, C, D):
        report(group, sender)
    a.release(lambda cast: True)
    assert not a.released_by_others(m1.id)
    assert list(a.forget()) == []
    b.release(lambda cast: True)
    report(group, B)
    assert a.released_by_others(m1.id)
    assert list(b.forget()) == []
    report(group, A)
    assert list(b.forget()) == [m1.id]
    assert list(a.forget()) == [m1.id]


def test_only_a_recipient_that_lacks_a_cast_gets_it_again() -> None:
    group = a, b, _, _ = group_of_four(k=1)
    m1, _ = a.send(message(A, 1, B), now=0)
    m2, _ = a.send(message(A, 2, B, C), now=5)
    for sender in (B, C, D):
        report(group, sender)
    assert a.missing(B, now=9, pause=10) == []
    assert a.missing(B, now=10, pause=10) == [(A, m1)]
    assert a.missing(B, now=15, pause=10) == []
    assert a.missing(C, now=15, pause=10) == [(A, m2)]
    assert a.missing(D, now=15, pause=10) == []
    arrive(b, m2, A)
    report(group, B)
    assert a.missing(B, now=25, pause=10) == [(A, m1), (A, m2)]  # it has no prefix
    arrive(b, m1, A)
    report(group, B)
    assert a.missing(B, now=40, pause=10) == []


def test_what_comes_after_a_lost_cast_of_the_same_member_is_not_carried_over() -> None:
    label = [Label.of(message(8, n, B)) for n in range(6)]
    here = ViewId(7, A)
    states = [
        Flushed(
            here, (label[0],), (0, 2, 0, 0), (HeldCast(B, 4, label[2]), HeldCast(B, 2, label[1]))
        ),
        Flushed(here, (), (0, 1, 0, 0), (HeldCast(B, 6, label[3]),)),
        Flushed(here, (), (0, 0, 0, 0)),
        Flushed(
            ViewId(6), (label[4],), (0, 5, 0), (HeldCast(B, 6, label[5]),)
        ),  # two of three are missing
        Flushed(ViewId(), ()),
    ]
    a, *_ = group_of_four(k=1)
    assert {union.id.seq for union in a.union(states)} == {0, 1, 4}
    states.append(Flushed(here, (), (0, 0, 0, 0), (HeldCast(B, 3, label[5]),)))
    assert {union.id.seq for union in a.union(states)} == {0, 1, 2, 4, 5}


def test_too_few_are_left_if_more_than_k_have_not_brought_their_states() -> None:
    a, *_ = group_of_four(k=2)
    assert not a.depends_on({B, C})
    assert a.depends_on({B, C, 9})


@pytest.mark.parametrize(
    "settings", [{"safe": False}, {"resilience": -1}, {"split_above": 5}, {"merge_below": 2}]
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"takes safe, and a resilience|only with inside"):
        replace(RECIPIENTS, **settings)


# in the daisy


def test_only_recipients_and_servers_on_the_way_get_a_copy() -> None:
    world = flowers(12)
    world.run(30)
    casts = watch(world, Cast)
    world.say(1, [2, 6])
    world.settle()
    copies = [(cast.group, sender, peer) for sender, peer, cast in casts]
    assert sorted(copies) == [(0, 1, 0), (0, 1, 2), (1, 4, 6), (TOP, 0, 4)]
    for *_, cast in casts:
        matrix = 10 if cast.group == TOP else 17
        assert cast.control_size == 16 + 4 * (matrix + len(cast.dests or ()))
    assert world.delivered(6) == world.delivered(2) == [(1, 1)]
    world.run(200)
    assert not world.has_history()


# what each rule is for


def answered(world: Daisies, to: list[int], crash: list[int]) -> Daisies:
    """1 casts, then tells 0, which tells 2 if it hears of it; 2 gets nothing of 1."""
    world.run(30)
    world.drops = lose_casts((1, 2))
    world.say(1, to)
    world.say(1, [0])
    world.run(15)
    if (1, 2) in world.delivered(0):
        world.say(0, [2])
    for process in crash:
        world.crash(process)
    world.settle(3000)
    return world


@pytest.mark.parametrize(("k", "ok"), [(0, False), (1, True), (2, True)])
def test_without_a_second_copy_the_crash_of_a_sender_leaves_a_hole(k: int, ok: bool) -> None:
    assert answered(flowers(4, k=k), to=[2], crash=[1]).check().ok == ok


@pytest.mark.parametrize(("k", "ok"), [(1, False), (2, True), (3, True)])
def test_so_many_copies_survive_so_many_crashes_and_not_more(k: int, ok: bool) -> None:
    assert answered(flowers(4, k=k), to=[2, 3], crash=[1, 3]).check().ok == ok


class Hasty(Matrices):
    """Asks for copies of a cast, and not of those before it."""

    def is_firm(self, cast: Cast, i: int) -> bool:
        return 1 + self._holders(cast, i) >= self.k


@pytest.mark.parametrize(("way", "ok"), [(Matrices, True), (Hasty, False)])
def test_copies_of_a_cast_are_not_enough(
    way: type[Matrices], ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Daisy, "to_recipients", way)
    assert answered(flowers(4), to=[2], crash=[1]).check().ok == ok


def test_what_is_for_the_view_to_come_is_not_mistaken_for_what_was_seen() -> None:
    """The server has cast (5,1) to 2, which is lost, and (5,2) to 3, and crashes."""
    world = flowers(8)
    world.run(30)
    world.drops = lose_casts((0, 2))
    world.say(5, [2])
    world.say(5, [3])
    while (5, 2) not in world.held(3):
        world.step()
    world.crash(0)
    world.settle(3000)
    assert world.delivered(2) == [(5, 1)]
    assert world.delivered(3) == [(5, 2)]
    world.sound()


# partitions, suspicion, coming and going


def test_who_lacks_more_than_k_of_a_view_waits_for_them_before_it_goes_on() -> None:
    world = flowers(8)
    world.run(50)
    world.part([1, 2], [3])
    world.run(250)
    assert world.view(1) == world.view(3) == (0, 1, 2, 3)
    world.run(150)
    assert world.view(3) == (0, 1, 2, 3)  # it waits for each of those before it in turn
    world.run(100)
    assert (world.view(0), world.view(1), world.view(3)) == ((0,), (1, 2), (3,))
    world.part()
    world.run(400)
    assert set(world.view(3)) == {0, 1, 2, 3}
