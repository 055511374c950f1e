"""Early relaying in the daisy: worked examples, and crashes of servers."""

import dataclasses
from typing import Any

import pytest

from testbed.protocols import MessageId
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.server_group import ByOrigin
from testbed.protocols.groups.messages import Cast, Report
from testbed.protocols.groups.stamped_cast import StampedCast
from testbed.protocols.groups.view import Member, View, ViewId
from tests.protocols.daisy.daisies import SERVERS, TOP, Daisies, afterwards, crash_at, watch
from tests.protocols.daisy.early_daisies import (
    EARLY,
    LATE,
    answer_before_question,
    flowers,
    has,
    lose,
    repair,
    until,
    waiting_in_a_circle,
)

# worked examples


def test_a_message_leaves_before_what_it_comes_after_and_is_delivered_after_it() -> None:
    world = flowers()
    relayed = lose(world, (1, 0, (1, 1)))
    world.say(1, [5])
    until(world, lambda: has(world, 2, (1, 1)))
    world.say(2, [5])
    world.run(15)
    assert relayed == [(2, 1)]
    assert world.delivered(5) == []
    repair(world)
    assert world.delivered(5) == [(1, 1), (2, 1)]
    assert world.meter.counted["early_relays"] == 1


def test_messages_of_one_sender_overtake_each_other_on_the_way_only() -> None:
    world = flowers()
    relayed = lose(world, (1, 0, (1, 1)))
    world.say(1, [5, 6])
    world.say(1, [5])
    world.run(15)
    assert relayed == [(1, 2)]
    repair(world)
    assert world.delivered(5) == [(1, 1), (1, 2)]


@pytest.mark.parametrize("settings", [EARLY, LATE], ids=["early", "late"])
def test_a_message_does_not_wait_for_one_that_stays_in_the_group(settings: Any) -> None:
    world = flowers(settings=settings)
    lose(world, (1, 0, (1, 1)))
    world.say(1, [2])
    until(world, lambda: has(world, 2, (1, 1)))
    world.say(2, [0, 5])
    world.run(15)
    assert world.delivered(5) == ([(2, 1)] if settings.early else [])
    assert world.delivered(0) == []
    repair(world)


def test_no_two_messages_wait_for_each_other() -> None:
    world = waiting_in_a_circle(Daisy)
    assert world.delivered(5) == [(1, 1), (2, 1)]
    assert world.delivered(3) == [(6, 1)]


def test_what_was_relayed_out_of_order_orders_what_answers_it() -> None:
    """m1 and m2 leave group 1 as m2, m1; m3 answers m2; where m1 is late, m3 waits for it."""
    world = flowers(12)
    lose(world, (5, 4, (5, 1)), (4, 8, (5, 1)))
    world.say(5, [9])
    until(world, lambda: has(world, 6, (5, 1)))
    world.say(6, [1])
    world.run(8)
    lose(world, (4, 8, (5, 1)))
    until(world, lambda: (6, 1) in world.delivered(1))
    world.say(1, [9])
    world.run(15)
    assert world.delivered(9) == []
    repair(world)
    assert world.delivered(9) == [(5, 1), (1, 1)]


def test_an_answer_waits_at_the_server_that_relayed_the_question_and_others_pass_it_by() -> None:
    world = answer_before_question(Daisy)
    assert world.delivered(2) == []
    assert world.delivered(3) == [(6, 1)]
    repair(world)
    assert world.delivered(2) == [(1, 1), (5, 1)]


def test_messages_within_a_group_carry_nothing_more_and_others_one_vector_for_each_group() -> None:
    world = flowers(12)
    casts = watch(world, Cast)
    world.say(1, [2])
    world.say(1, [5])
    world.settle(longer_ms=0)
    world.say(5, [1])
    world.settle()
    sizes = {(cast.group, cast.id): cast.control_size for *_, cast in casts}
    local = 16 + 4 * 4 + 4
    assert sizes[0, MessageId(1, 1)] == local
    assert sizes[0, MessageId(1, 2)] == local + 4
    assert sizes[1, MessageId(1, 2)] == local + 12 + 4 * 3
    assert sizes[1, MessageId(5, 1)] == local + 12 + 4 * 3
    assert sizes[TOP, MessageId(5, 1)] == 16 + 4 * 3 + 4 + 4


def test_a_server_forgets_what_it_delivered_before_an_earlier_broadcast_came() -> None:
    view = View(ViewId(1, 0), tuple(Member(p, 0, frozenset({p}), p) for p in range(2)))
    servers = ByOrigin(view, 1, ())
    first, second = (
        StampedCast(8 + n, 1, view=view.id, vector=(n, 0), dests=frozenset({1})) for n in (1, 2)
    )
    for cast in (second, first):
        servers.hold(cast, 0)
        ready = servers.next()
        assert ready is not None
        servers.kept.record(ready[0])
    servers.release(lambda cast: True)
    servers.note(0, Report(0, 0, view=view.id, promised=1, delivered=(2, 0), released=(0, 2, 0)))
    assert set(servers.forget()) == {first.id, second.id}


def test_all_is_forgotten_once_it_has_arrived_everywhere() -> None:
    world = flowers(12, loss=0.1)
    for process in range(12):
        world.say(process)
    world.run(2000)
    assert world.due() == 0
    assert not world.has_history()


@pytest.mark.parametrize("wrong", [{"levels": 3}, {"safe": True}, {"split_above": 5}])
def test_early_relaying_takes_two_levels_and_no_waiting(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="takes"):
        dataclasses.replace(EARLY, **wrong)


# crashes


def busy_run(seed: int = 7) -> Daisies:
    world = flowers(12, seed, answering=0.1, wire=False)
    for process, to in ((1, [2, 6, 10]), (2, [3]), (5, None), (9, [0, 4]), (3, [7, 1])):
        world.say(process, to)
        world.say((process + 6) % 12, to)
    return world


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_may_crash_at_any_event(server: int) -> None:
    crash_at(busy_run, server)


def test_what_waits_for_a_message_that_nobody_has_is_discarded() -> None:
    world = flowers()
    lose(world, *((1, peer, (1, 1)) for peer in (0, 2, 3)))
    world.say(1, [5])
    world.say(1, [6])
    world.say(2, [5])
    world.run(8)
    assert (1, 2) in world.held(4, 1)
    world.crash(1)
    world.run(400)
    assert not world.held(4, 1)
    afterwards(world)
    assert (1, 2) not in world.delivered(6)
    assert world.delivered(5)[0] == (2, 1)


def test_servers_that_begin_anew_do_not_wait_for_what_has_long_arrived() -> None:
    world = flowers(seed=2)  # m1 is relayed before m2
    lose(world, (0, 4, (1, 2)))
    world.say(1, [5])
    world.say(1, [6])
    world.run(200)
    assert [name for name in world.group(1).history if name.source == 1] == [(1, 2)]
    world.crash(0)
    world.crash(4)
    repair(world)
    assert world.delivered(6) == [(1, 2)]


def test_who_was_away_brings_along_what_others_waited_for() -> None:
    world = flowers()
    lose(world, *((1, peer, (1, 1)) for peer in (0, 2, 3)))
    world.say(1, [5])
    world.say(1, [5, 6])
    world.run(8)
    world.pause(1)
    world.drops = lambda sender, peer, message: False
    world.run(300)
    assert 1 not in world.view(0)
    world.resume(1)
    afterwards(world)
    assert world.delivered(5)[:2] == [(1, 1), (1, 2)]
