"""The group layer: views, and how members agree on them under faults."""

from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest

from testbed.protocols import Effects, Message, MessageId, Send, SetTimer
from testbed.protocols.groups.agreed import Flushed
from testbed.protocols.groups.flush import Flush, Part
from testbed.protocols.groups.messages import OUTSIDE, Cast, Expelled, Join, Report
from testbed.protocols.groups.succession import Joiner
from testbed.protocols.groups.view import FIRST, Member, View, ViewId, following
from tests.protocols.daisy import daisies
from tests.protocols.daisy.daisies import Daisies
from tests.protocols.groups.members import TIMING, A, B, C, D, group_at, members_of, view_of
from tests.world import MS

M = TypeVar("M", bound=Message)

# views


@pytest.mark.parametrize(
    ("agreed", "replaced", "enough"),
    [
        ({A, B, C}, set(), True),
        ({A, B}, set(), True),  # half, with the eldest
        ({C, D}, set(), False),
        ({B}, set(), False),
        ({C, D}, {A}, True),  # two of three
        ({C}, {A, B}, True),  # half, with the eldest of those whose place is their own
        ({A}, {A, B, C, D}, False),
    ],
)
def test_two_majorities_always_share_a_member(
    agreed: set[int], replaced: set[int], enough: bool
) -> None:
    view = View(ViewId(1, A), members_of(A, B, C, D))
    assert view.is_majority(agreed, replaced) == enough
    assert not (enough and view.is_majority({A, B, C, D} - agreed, replaced))


def test_whoever_is_expelled_is_absent_until_somebody_answers_for_it() -> None:
    view = View(ViewId(1, A), members_of(A, B, C, D))
    second = following(view, ViewId(2, A), members_of(A, B), left=frozenset({C}), weak=False)
    assert second.absent == members_of(D)  # C has left
    assert second.roster == {A, B, D}
    third = following(
        second,
        ViewId(3, A),
        (*members_of(A), Member(7, 1, frozenset({D}), 7)),
        frozenset({B}),
        False,
    )
    assert third.absent == ()


def test_a_new_server_does_not_make_those_vanish_whom_only_its_predecessor_answered_for() -> None:
    """B has split C and D off from its group and crashes before their server has joined."""
    old = Member(B, 1, frozenset({B, C, D, 7}), of=5)
    view = View(ViewId(1, A), (*members_of(A), old))
    new = Member(7, 2, frozenset({B, 7}), of=5, away=frozenset({B}))
    second = following(view, ViewId(2, A), (*members_of(A), new), frozenset(), False)
    assert second.absent == (old._replace(roster=frozenset({C, D})),)
    known = old._replace(roster=frozenset({B, 7}))
    second = following(view, ViewId(2, A), (*members_of(A), known), frozenset(), False)
    assert second.absent == ()  # it says itself that others answer for them


def test_a_joiner_that_has_promised_a_greater_view_says_so_and_one_greater_still_is_proposed() -> (
    None
):
    """The proposer once waited for it for ``grace_ms``."""
    joiner, a = group_at(B, view_of(A, B, C)), group_at(A, view_of(A, C, number=FIRST + 1))
    greater, own = ViewId(FIRST + 700, C), a.view
    assert own is not None
    list(joiner.receive(Flush(C, 0, view=greater, joins=False), C, MS))
    list(joiner.receive(Expelled(A, 0, view=own.id), A, MS))
    assert joiner.seeking
    (join,) = sent(joiner.tick(2 * MS, lambda cast: True), Join)
    list(a.receive(join, B, 2 * MS))
    (flush,) = sent(a.tick(3 * MS, lambda cast: True), Flush)
    assert own.id < flush.view < greater
    (report,) = sent(joiner.receive(flush, A, 3 * MS), Report)
    list(a.receive(report, B, 4 * MS))
    (flush,) = sent(a.tick(4 * MS, lambda cast: True), Flush)
    assert flush.view > greater
    assert sent(joiner.receive(flush, A, 5 * MS), Part)


def sent(effects: Effects, kind: type[M]) -> list[M]:
    """The messages of a kind that are sent."""
    messages = [effect.message for effect in effects if isinstance(effect, Send)]
    return list({id(m): m for m in messages if isinstance(m, kind)}.values())


def test_a_joiner_that_asks_no_more_does_not_keep_the_leader_from_leading() -> None:
    a = group_at(A, view_of(A, B))
    instead = Member(9, 1, frozenset({A}), A)  # takes the place of A
    a.succession.joiners[9] = Joiner(instead, OUTSIDE, 0)
    leaders = partial(a.succession.leaders, list(members_of(A, B)))
    assert leaders(TIMING.patience - 1) == list(members_of(B))
    assert leaders(TIMING.patience) == list(members_of(A, B))


def test_who_is_missing_or_was_a_short_time_ago_may_have_what_others_need() -> None:
    a = group_at(A, view_of(A, B, C, absent=members_of(D, 9)))
    here, elsewhere = Flushed(view_of(A).id, ()), Flushed(ViewId(), ())
    now = TIMING.grace - 1
    missing = partial(a.succession.missing, {A: here, B: elsewhere, 9: elsewhere})
    assert missing(now) == {B, C, D}  # 9 comes back
    assert missing(now + 1) == {B, C}


def test_who_leaves_waits_until_those_who_were_away_have_asked_everybody() -> None:
    a = group_at(A, view_of(A, B, absent=members_of(C)))
    a.admission.candidates = tuple(range(1, 31))
    a.kept.archive[MessageId(A, 1)] = Cast(A, 1)
    late = TIMING.grace + 30 * TIMING.heartbeat
    assert a.admission.is_needed(late - 1)
    assert not a.admission.is_needed(late)
    a.detector.hear(B, late)
    list(
        a.admission.on_join(
            Join(C, 0, how=OUTSIDE, backing=1, roster=frozenset({C}), of=C), B, late
        )
    )
    asked = late + TIMING.patience + 30 * TIMING.heartbeat
    assert a.admission.is_needed(asked - 1)
    assert not a.admission.is_needed(asked)


def test_a_timer_for_acknowledgements_counts_for_the_group_for_which_it_was_set() -> None:
    a = group_at(A, view_of(A, B), TIMING._replace(ack=MS))
    soon = partial(a.reporting.acknowledge_soon, [B])
    assert list(soon()) == [SetTimer(("ack", 0), MS)]
    assert list(soon()) == []
    a.number = 7  # it was split off
    assert list(soon()) == [SetTimer(("ack", 7), MS)]


def test_who_is_in_an_older_view_hears_what_the_members_of_a_newer_one_have_promised() -> None:
    old, new = view_of(A, B, number=1), view_of(A, B, number=2)
    a, b = group_at(A, old), group_at(B, new)
    list(b.receive(Flush(A, 0, view=ViewId(900, A)), A, 1))  # a proposal that A has given up
    [report] = [e for e in b.tick(2, lambda cast: True) if isinstance(e, Send)]
    list(a.receive(report.message, B, 3))
    assert a.change.promised.number == 900  # what it proposes next is greater


# groups under faults

QUICK = replace(daisies.QUICK, heartbeat_ms=5, patience_ms=40)


def group_of(processes: int, seed: int = 0, **more: Any) -> Daisies:
    """One local group alone."""
    settings = replace(QUICK, group_size=processes)
    return Daisies(processes, seed, settings, **{"delays_ms": (1, 5), **more})


def test_a_member_that_crashes_is_expelled_and_the_others_agree() -> None:
    world = group_of(4)
    world.run(50)
    world.crash(A)
    world.run(200)
    assert {world.view(p) for p in (B, C, D)} == {(B, C, D)}
    assert len({world.group(p).change.promised for p in (B, C, D)}) == 1


def test_what_a_dead_member_sent_to_one_reaches_all_who_are_left() -> None:
    world = group_of(4)
    world.run(50)
    world.drops = lambda sender, peer, message: (
        sender == A and peer != C and isinstance(message, Cast)
    )
    world.say(A)
    world.run(8)
    assert [world.delivered(p) for p in (B, C, D)] == [[], [(A, 1)], []]
    world.crash(A)
    world.run(300)
    assert [world.delivered(p) for p in (B, C, D)] == [[(A, 1)]] * 3


def test_of_what_a_dead_member_sent_nobody_keeps_what_comes_after_what_is_lost() -> None:
    world = group_of(4)
    world.run(50)
    world.drops = lambda sender, peer, message: sender == A and message.seq == 1
    world.say(A)
    world.say(A)
    world.run(8)
    world.crash(A)
    world.say(B)
    world.settle()
    assert [world.delivered(p) for p in (B, C, D)] == [[(B, 1)]] * 3
    world.sound()


def test_who_was_suspected_by_mistake_is_told_and_returns_with_what_it_sent() -> None:
    world = group_of(4)
    world.run(50)
    world.part([D])
    world.say(D)
    world.say(A)
    world.run(150)
    assert world.view(A) == (A, B, C)
    assert world.delivered(A) == [(A, 1)]
    world.part()
    world.settle()
    assert {world.view(p) for p in range(4)} == {(A, B, C, D)}
    assert world.meter.counted["expelled"] >= 1
    world.sound()
    assert world.due() == 0


def test_of_two_parts_only_the_one_with_the_majority_is_strong() -> None:
    world = group_of(5)
    world.run(50)
    world.part([A, B])
    world.run(150)
    assert [world.view(p) for p in range(5)] == [(A, B)] * 2 + [(2, 3, 4)] * 3
    weak = [world.group(p).view.weak for p in range(5)]  # type: ignore[union-attr]
    assert weak == [True, True, False, False, False]
    assert not world.group(A).may_relay(world.now)
    world.run(300)
    assert world.group(A).may_relay(world.now)  # by now the others have crashed, it seems
    world.part()
    world.run(300)
    assert len({world.view(p) for p in range(5)}) == 1
    assert not world.group(A).view.weak  # type: ignore[union-attr]


def test_a_process_that_starts_again_is_admitted_and_its_numbers_are_new() -> None:
    world = group_of(4)
    world.run(50)
    world.say(B)
    world.run(20)
    world.restart(B)
    world.say(B)
    world.settle()
    assert world.delivered(A) == [(B, 1), (B, (1 << 20) + 1)]
    assert {world.view(p) for p in range(4)} == {(A, C, D, B)}
    world.sound()


def test_a_process_that_starts_again_before_anybody_missed_it_is_admitted_even_as_the_first() -> (
    None
):
    world = group_of(3)
    world.run(50)
    world.restart(A)
    world.say(A)
    world.settle()
    assert {world.view(p) for p in range(3)} == {(B, C, A)}
    world.sound()


@pytest.mark.parametrize("leaver", [A, C])
def test_a_member_leaves_without_being_missed_and_may_join_again(leaver: int) -> None:
    world = group_of(4)
    world.run(50)
    world.say(leaver)
    world.leave(leaver)
    world.run(100)
    rest = [p for p in range(4) if p != leaver]
    assert {world.view(p) for p in rest} == {tuple(rest)}
    assert all(world.group(p).view.absent == () for p in rest)  # type: ignore[union-attr]
    assert all(world.delivered(p) == [(leaver, 1)] for p in rest)
    assert world.protocols[leaver].busy()
    world.join(leaver)
    world.say(leaver)
    world.settle()
    assert {world.view(p) for p in range(4)} == {(*rest, leaver)}
    assert all(world.delivered(p) == [(leaver, 1), (leaver, 2)] for p in rest)


def test_a_process_that_stood_still_does_not_suspect_the_others_for_it() -> None:
    world = group_of(2)
    world.run(50)
    world.pause(A)
    world.run(30)
    world.resume(A)
    world.run(100)
    assert world.meter.counted["view_changes"] == 0


def test_the_last_of_a_view_goes_on_alone() -> None:
    world = group_of(4)
    world.run(50)
    for process in (A, B, C):
        world.crash(process)
    world.say(D)
    world.run(200)
    assert world.view(D) == (D,)
    assert world.delivered(D) == [(D, 1)]


@pytest.mark.parametrize("rate", [0.05, 0.15, 0.3])
def test_omissions_are_repaired(rate: float) -> None:
    world = group_of(5, seed=3, loss=rate)
    for number in range(20):
        world.at(10 + 3 * number, partial(world.say, number % 5))
    world.run(100)
    world.settle()
    assert world.due() == 0
    world.sound()
    world.run(500)
    assert all(not world.group(p).history for p in range(5))


def test_a_member_that_answers_for_others_than_before_still_counts_as_one_who_agrees() -> None:
    a = group_at(A, view_of(A, B))
    a.me = a.me._replace(roster=frozenset({A, C}), backing=1)
    for now in range(MS, TIMING.patience + MS, MS):
        list(a.tick(now, lambda cast: True))  # B never answers
    assert a.view is not None
    assert a.view.members == (a.me,)
    assert not a.view.weak
