"""Scenes that once went wrong: a message lost, out of order or late, or a group that stood still.

Those on the simulator have the settings, the links and the loads with which they were found.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from testbed.protocols import Message, MessageId, Send
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.hierarchy import BACKING_BITS
from testbed.protocols.daisy.server_group import ByOrigin
from testbed.protocols.groups.agreed import Flushed, Install, parts_of
from testbed.protocols.groups.casting import Casting
from testbed.protocols.groups.flush import FLUSHED, Flush
from testbed.protocols.groups.group import Group
from testbed.protocols.groups.messages import INSIDE, OUTSIDE, Cast, Expelled, Join, Report
from testbed.protocols.groups.view import FIRST, Member, View, ViewId
from testbed.protocols.groups.view_change import STRONG
from tests.protocols.daisy.daisies import QUICK, TOP, Daisies, watch
from tests.protocols.daisy.experiments import MEGABYTE, Run, crash, experiment, poisson
from tests.protocols.groups.members import TIMING, members_of
from tests.world import MS


def script(*sends: dict[str, Any]) -> dict[str, Any]:
    return {"model": "script", "settle_ms": 8000.0, "send": list(sends)}


# order


def test_who_leaves_and_rejoins_after_somebodys_crash_delivers_in_order() -> None:
    """Messages 1, 2, 3 answer each other; 5 is out when 1 is sent, and back when 3 comes."""
    run = experiment(
        12,
        {"group_size": 4},
        script(
            {"node": 2, "at_ms": 1250.0},
            {"node": 0, "at_ms": 1300.0, "to": [5, 9]},
            {"node": 9, "answers": 1, "to": [7]},
            {"node": 7, "answers": 2, "to": [3, 5]},
        ),
        [crash(3, 300.0), {"kind": "leave", "node": 5, "at_ms": 1126.0, "for_ms": 2000.0}],
        delay_ms=1.0,
        seed=1,
    )
    run.is_sound()


def test_what_is_answered_while_a_union_is_handed_up_loses_nothing() -> None:
    """0 was cut off, gets three messages with its new view, and answers the first at once."""
    run = experiment(
        6,
        {"group_size": 2},
        script(
            {"node": 2, "at_ms": 1713.609, "to": [0, 1]},
            {"node": 5, "at_ms": 1736.3, "to": [0, 1]},
            {"node": 5, "at_ms": 1758.388, "to": [0, 1]},
            {"node": 0, "answers": 0, "to": [5]},
        ),
        [{"kind": "partition", "nodes": [0], "at_ms": 1005.341, "for_ms": 700.0}],
        delay_ms=(0.5, 5.0),
        seed=14,
    )
    run.is_sound()
    got = [(e.source, e.seq) for e in run.events[0] if e.event == "deliver" and e.source == 5]
    assert got == [(5, 1), (5, 2)]


@pytest.mark.parametrize("gap_ms", [45, 80])
def test_a_server_that_leaves_and_comes_back_brings_along_what_it_delivered_last(
    gap_ms: int,
) -> None:
    """Nobody else in its group gets a message from above before it is back."""
    world = Daisies(8, 0)
    world.run(50)
    end = world.now + 100 * MS

    def drops(sender: int, peer: int, message: Message) -> bool:
        late = sender == 0 and peer in (1, 2, 3) and isinstance(message, Cast)
        return late and world.now < end

    world.drops = drops
    world.say(5, [0, 1, 2, 3])
    while (5, 1) not in world.delivered(0):
        world.step()
    world.leave(0)
    world.run(gap_ms)
    world.join(0)
    world.say(0, [1, 2, 3])
    world.run(600)
    world.settle()
    assert world.due() == 0
    world.sound()


# standstill


def test_a_second_crash_does_not_send_all_the_traffic_since_the_first_again() -> None:
    faults = [crash(9, 1000.0), crash(1, 11_000.0)]
    load = poisson(4.0, 16_000.0, 8000.0, payload_bytes=1000)
    run = experiment(12, {"group_size": 4}, load, faults, bandwidth_mbit=10.0)
    run.is_sound()
    assert run.longest_gap_ms() < 2000
    assert 0 < run.view_change_bytes() < 5 * MEGABYTE


def after_a_crash_in_a_large_group(seed: int, duration_ms: float, settle_ms: float) -> Run:
    settings = {"group_size": 13, "split_above": 5}
    load = poisson(2.0, duration_ms, settle_ms)
    return experiment(13, settings, load, [crash(7, 300.0)], bandwidth_mbit=1000.0, seed=seed)


def sizes(run: Run) -> set[int]:
    return {len(run.protocol(p).local.view.members) for p in run.live}


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_a_group_is_split_within_two_seconds_of_a_crash(seed: int) -> None:
    run = after_a_crash_in_a_large_group(seed, 2000.0, 300.0)
    run.is_sound()
    assert max(sizes(run)) <= 5


def test_groups_are_split_soon_after_a_crash_also_if_that_takes_several_steps() -> None:
    run = after_a_crash_in_a_large_group(5, 6000.0, 1000.0)
    run.is_sound()
    splits = sorted(e.t / 1e6 for es in run.events.values() for e in es if e.event == "split")
    assert 300 < splits[0] < splits[-1] < 2300
    assert max(sizes(run)) <= 5
    assert run.worst_delay_ms() < 1000


def test_one_bad_link_delays_nothing_for_long() -> None:
    bad = {"kind": "loss", "rate": 0.9, "link": [0, 3], "at_ms": 2000.0, "for_ms": 5000.0}
    run = experiment(8, {"group_size": 4}, poisson(5.0, 9000.0, 5000.0), [bad])
    run.is_sound()
    assert run.worst_delay_ms() < 1000


@pytest.mark.parametrize(("number", "size", "every_ms"), [(10, 20_000, 0.2), (100, 1400, 2.0)])
def test_what_takes_long_to_transmit_arrives_at_one_that_was_cut_off(
    number: int, size: int, every_ms: float
) -> None:
    sends = ({"node": 0, "at_ms": 100 + every_ms * n, "payload_bytes": size} for n in range(number))
    cut = {"kind": "partition", "nodes": [1], "at_ms": 95.0, "for_ms": 300.0}
    settings = {"levels": 1, "heartbeat_ms": 20.0, "patience_ms": 100.0, "grace_ms": 400.0}
    run = experiment(3, settings, script(*sends), [cut], 1.0, bandwidth_mbit=10.0)
    run.is_sound()
    assert run.worst_delay_ms() < 4000


def test_traffic_crosses_groups_again_soon_after_all_servers_and_a_group_have_crashed() -> None:
    faults = [crash(node, 4000.0) for node in (0, 4, 8, 9, 10, 11)]
    load = poisson(4.0, 10_000.0, 8000.0)
    run = experiment(12, {"group_size": 4}, load, faults, bandwidth_mbit=1000.0, seed=3)
    run.is_sound()
    assert run.longest_gap_ms(group_size=4) < 3000


# what is kept, and for whom


def test_what_is_for_those_whom_two_groups_count_among_theirs_becomes_stable() -> None:
    settings = {"heartbeat_ms": 10.0, "patience_ms": 50.0, "grace_ms": 400.0, "forget_ms": 800.0}
    missed = {"kind": "partition", "nodes": [2], "at_ms": 12.03, "for_ms": 160.0}  # the split
    leaves = {"kind": "leave", "node": 1, "at_ms": 1700.0}
    run = experiment(
        4,
        {"group_size": 4, "split_above": 3, "ack_ms": 1.0, **settings},
        script({"node": 1, "at_ms": 1550.0}),
        [missed, leaves],
        delay_ms=1.0,
        seed=1,
    )
    run.is_sound()
    assert all({2, 3} <= run.protocol(node).local.view.roster for node in (2, 3))
    assert run.protocol(2).local.number != run.protocol(3).local.number
    assert run.protocol(1).local.out


def test_the_last_of_a_group_that_leaves_is_not_counted_as_crashed() -> None:
    world = Daisies(5, settings=replace(QUICK, group_size=3))
    world.run(50)
    assert world.view(0) == (0, 1)
    for process in (2, 3, 4):
        world.leave(process)
        world.run(300)
        assert world.group(process).out
    above = world.group(0, 1).view
    assert above is not None
    assert (above.processes, above.absent, above.away) == ((0,), (), frozenset())
    for number in range(20):
        world.at(1000 + 10 * number, partial(world.say, number % 2))
    world.run(1000)
    assert not world.has_history()
    assert not any(group.kept.archive for p in (0, 1) for group in world.protocols[p].groups)


def test_who_crashes_is_owed_what_is_sent_to_it_and_nothing_else_is_kept() -> None:
    world = Daisies(8)
    world.run(50)
    world.crash(6)
    world.run(300)
    world.say(1, [6, 7])
    world.say(1, [7])
    world.run(500)
    assert world.delivered(7) == [(1, 1), (1, 2)]
    assert not world.has_history()
    for process in (4, 5, 7):
        assert list(world.group(process).kept.archive) == [(1, 1)]


@pytest.mark.parametrize("gone", [(4,), (3, 4, 5)])
def test_who_was_split_off_and_crashes_at_once_keeps_nobody_from_leaving(
    gone: tuple[int, ...],
) -> None:
    """Where groups of servers are not split, its former server answered for it for ever."""
    world = Daisies(6, settings=replace(QUICK, group_size=6, split_above=5))
    while not world.group(0).given:
        world.step()
    for process in gone:
        world.crash(process)
    world.run(500)
    world.say(1)
    world.run(500)
    assert not world.has_history()
    world.leave(1)
    world.run(300)
    assert world.group(1).out


# merges

MERGING = replace(QUICK, group_size=2, merge_below=2)


def test_who_moves_to_another_group_is_not_called_back_by_those_who_were_cut_off() -> None:
    """Else both groups would take it from each other, and it would be a member of none."""
    world = Daisies(6, seed=2, settings=MERGING)
    world.run(50)
    world.part([1])
    while not world.group(0).admission.moved:
        world.step()
    world.part()
    calls: list[tuple[int, int, Expelled]] = []

    def is_early(sender: int, peer: int, message: Message) -> bool:
        return peer == 0 and isinstance(message, Flush) and not calls

    calls = watch(world, Expelled, is_early)
    world.settle()
    world.run(500)
    assert (1, 0) in {(sender, peer) for sender, peer, _ in calls}
    assert world.view(0) == world.view(2) == (2, 3, 0)


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_who_was_merged_into_a_view_that_does_not_prevail_is_owed_what_is_above(seed: int) -> None:
    """0 joins 3 while 1 and 2 are cut off; the view of 2 prevails, and has not heard of 0."""
    world = Daisies(6, seed, settings=MERGING)
    world.run(50)
    world.part([1, 2])
    world.at(230, world.part)
    for number in range(30):
        world.at(200 + 5 * number, partial(world.say, 4, [0, 5] if number % 2 else None))
    world.run(600)
    world.settle()
    assert world.due() == 0
    world.sound()


# early relaying


@pytest.mark.parametrize(("way", "learns"), [(ByOrigin, True), (Casting, False)])
def test_servers_learn_what_was_seen_in_the_view_that_others_come_from(
    way: type[Casting], learns: bool
) -> None:
    """Who joins has seen a message that all who have it may forget; others' messages may name it."""
    old, joiner = members_of(0, 1)
    group = Group(TOP, old, TIMING, range(2), way, View(ViewId(FIRST, 0), (old,), (joiner,)))
    fields = {"backing": joiner.backing, "of": 1, "how": OUTSIDE, "roster": joiner.roster}
    list(group.receive(Join(1, 0, group=TOP, **fields), 1, now=0))  # type: ignore[arg-type]
    sent = [e for e in group.tick(1, lambda cast: True) if isinstance(e, Send)]
    [flush] = [e.message for e in sent if isinstance(e.message, Flush)]
    answer = Flushed(ViewId(FIRST - 1, 1), (), seen=(MessageId(12, 2),))
    for part in parts_of(answer.encode(), flush.view, FLUSHED, 1, TOP):
        list(group.receive(part, 1, now=2))
    assert group.view is not None
    assert group.view.processes == (0, 1)
    assert group.kept.has_seen(MessageId(12, 2)) == learns


# numbers


def test_a_server_joins_above_after_any_number_of_views_below() -> None:
    views = 20_000
    backing = FIRST + views * STRONG << BACKING_BITS
    assert backing > 1 << 32
    roster = frozenset({1, 2})
    join = Join(1, 0, group=TOP, backing=backing, of=0, how=INSIDE, roster=roster)
    codec = Daisy.codec(7, 4)
    assert codec.decode(codec.encode(join)).member == Member(1, backing, roster, 0)  # type: ignore[attr-defined]
    install = Install(View(ViewId(views, 1), (join.member,)))
    assert Install.decode(install.encode()) == install


# reports


def test_members_report_to_the_server_and_it_to_them() -> None:
    world = Daisies(8, settings=replace(QUICK, group_size=8))
    world.run(50)
    before, beats = world.sent[Report].copies, 20
    world.run(beats * QUICK.heartbeat_ms)
    assert world.sent[Report].copies - before <= (beats + 1) * 2 * 7
