"""The daisy whose local groups send by way of their server: what travels, and crashes."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from testbed.protocols.daisy.star import StarCasting
from testbed.protocols.groups.messages import Cast, Report
from testbed.protocols.groups.view import Member, View, ViewId
from tests.protocols.daisy.daisies import QUICK, STAR, Daisies, lose_casts, watch
from tests.world import MS


def star(processes: int, settings: Any = STAR, **more: Any) -> Daisies:
    return Daisies(processes, settings=settings, **more)


# what travels


@pytest.mark.parametrize(
    ("sender", "to", "expected"),
    [
        pytest.param(1, [2], [(1, 0), (0, 2)], id="to another member"),
        pytest.param(1, [0], [(1, 0)], id="to the server"),
        pytest.param(1, [1, 2, 3], [(1, 0), (0, 2), (0, 3)], id="to some, and not back"),
        pytest.param(0, [2], [(0, 1), (0, 2), (0, 3)], id="only the server has its own: to all"),
        pytest.param(1, [6], [(1, 0), (0, 4), (4, 6)], id="to one in another group"),
        pytest.param(1, [4], [(1, 0), (0, 4)], id="to another group's server"),
    ],
)
def test_a_message_goes_to_the_server_and_from_there_to_its_destinations(
    sender: int, to: list[int], expected: list[tuple[int, int]]
) -> None:
    world = star(8)
    world.run(30)
    casts = watch(world, Cast)
    world.say(sender, to)
    world.settle()
    assert [(sender, peer) for sender, peer, _ in casts] == expected
    local, servers = 16 + 4 + 4 * len(to), 16 + 8 + 4 * len(to)  # one integer, or one for each
    for sender, peer, cast in casts:
        assert cast.control_size == (servers if {sender, peer} == {0, 4} else local)
    assert {p for p in range(8) if world.delivered(p)} == set(to)


def spread(settings: Any) -> tuple[Daisies, int]:
    """Each of two groups of eight sends eight messages inside; and the longest delay."""
    world = star(16, replace(settings, group_size=8), delays_ms=(1, 1))
    world.run(30)
    for sender in range(16):
        world.say(sender, [sender // 8 * 8 + (sender + 3) % 8])
    world.settle()
    world.sound()
    events = [event for log in world.log.events.values() for event in log]
    sent = {(e.source, e.seq): e.t for e in events if e.event == "send"}
    return world, max(e.t - sent[e.source, e.seq] for e in events if e.event == "deliver")


def test_it_takes_fewer_copies_and_fewer_bytes_and_one_hop_more() -> None:
    (all_, direct), (star_, by_server) = spread(QUICK), spread(STAR)
    assert (direct, by_server) == (1 * MS, 2 * MS)
    assert all_.sent[Cast].copies == 2 * 8 * 7
    assert star_.sent[Cast].copies == 2 * (7 + 7 + 6)  # the server's own, to the server, and on
    assert all_.sent[Cast].bytes == all_.sent[Cast].copies * (32 + 16 + 8 * 4 + 4 + 8)
    assert star_.sent[Cast].bytes == star_.sent[Cast].copies * (32 + 16 + 4 + 4 + 8)
    assert star_.sent[Report].bytes < 0.6 * all_.sent[Report].bytes  # shorter, and as many


def test_only_a_destination_acknowledges_and_only_to_the_server() -> None:
    world = star(4)
    world.run(31)
    reports = watch(world, Report)
    world.say(1, [2])

    def told() -> list[tuple[int, int, int]]:
        """Who tells whom how many of the server's messages it has delivered."""
        return [(s, peer, said.delivered[0]) for s, peer, said in reports if said.delivered]

    while not told():
        world.step()
    assert told() == [(2, 0, 1)]


def test_a_message_is_forgotten_everywhere_once_it_has_arrived_everywhere() -> None:
    world = star(16, replace(STAR, levels=3, group_size=3))
    world.run(30)
    for process in range(16):
        world.say(process)
    world.run(12)
    assert any(world.group(p).history for p in range(16))
    world.run(1500)
    assert not world.has_history()
    for process in range(16):
        links = world.group(process).casting
        assert isinstance(links, StarCasting)
        kept = (links.sequence, links.sent_at, *links.sent, *links.slots)
        assert not any(kept)


def test_what_was_carried_from_view_to_view_is_forgotten_by_all_who_were_given_it() -> None:
    world = star(12, wire=False, loss=0.1)
    for number in range(20):
        world.at(40 + 5 * number, partial(world.say, number * 5 % 12, [number * 7 % 12, 6]))
    for number, process in enumerate((5, 4, 1)):
        world.at(70 + 30 * number, partial(world.restart, process))
    world.run(70 + 35)
    assert any(world.group(p).history for p in range(12))
    world.run(1500)
    assert not world.has_history()


def test_a_sender_keeps_its_message_until_the_farthest_destination_has_it() -> None:
    world = star(12)
    world.run(30)
    world.drops = lambda sender, peer, message: peer == 11 and isinstance(message, Cast)
    world.say(1, [3, 11])
    world.run(60)
    assert [(1, 1) in world.group(p).history for p in (0, 1, 2, 3)] == [True, True, False, True]
    assert (1, 1) in world.group(4, 1).history
    world.drops = lambda sender, peer, message: False
    world.settle()
    world.run(200)
    assert not any(world.group(p).history for p in (0, 1, 3))
    assert world.delivered(11) == [(1, 1)]


def test_groups_that_send_by_way_of_a_server_are_not_split_or_merged() -> None:
    with pytest.raises(ValueError, match="split or merged"):
        replace(STAR, split_above=5)


# the links of a view


def links(me: int) -> StarCasting:
    members = tuple(Member(p, 0, frozenset({p}), p) for p in range(3))
    return StarCasting(View(ViewId(1, 0), members), me, ())


def report(source: int, delivered: tuple[int, ...], released: tuple[int, ...]) -> Report:
    return Report(source, 0, view=ViewId(1, 0), promised=1, delivered=delivered, released=released)


def test_the_messages_of_a_link_are_delivered_in_the_order_of_their_numbers() -> None:
    sender, server = links(1), links(0)
    sent = [sender.send(Cast(1, seq, dests=frozenset({2})), 0)[1][0][1] for seq in (1, 2, 3)]
    assert [copy.vector for copy in sent] == [(1,), (2,), (3,)]
    assert server.hold(sent[2], 1)
    assert server.hold(sent[1], 1)
    assert not server.hold(sent[1], 1)
    assert server.next() is None
    assert server.hold(sent[0], 1)
    assert [server.next() for _ in range(4)] == [*((copy, False) for copy in sent), None]


def test_the_server_says_what_is_stable_when_all_destinations_have_it() -> None:
    server, sender, destination = map(links, range(3))
    _, [(_, copy)] = sender.send(Cast(1, 1, dests=frozenset({2})), 0)
    server.hold(copy, 1)
    assert server.next() == (copy, False)
    [(peers, forwarded)] = server.onward(copy, 0)
    assert peers == (2,)
    assert forwarded.vector == (1,)
    server.note(1, report(1, (0, 1), (0, 0, 0)))
    server.release(lambda cast: True)
    assert not server.everywhere(copy.id)
    assert not list(server.forget())
    destination.hold(forwarded, 0)
    destination.next()
    [status] = destination.reports((0,), leads=False, waiting={0})
    assert status.peers == (0,)
    server.note(2, report(2, status.delivered, status.released))
    assert server.everywhere(copy.id)
    assert list(server.forget()) == [copy.id]
    for peers, delivered, released, _ in server.reports((1, 2), leads=True, waiting=None):
        member = sender if peers == (1,) else destination
        assert not list(member.forget())
        member.note(0, report(0, delivered, released))
        assert list(member.forget()) == [copy.id]


def test_what_the_layer_above_needs_is_not_stable_though_all_have_it() -> None:
    server = links(0)
    copy, _ = server.send(Cast(0, 1, dests=frozenset({2})), 0)
    for peer in (1, 2):
        server.note(peer, report(peer, (1, 0), (0, 0, 0)))
    server.release(lambda cast: False)
    assert server.everywhere(copy.id)
    assert not list(server.forget())
    server.release(lambda cast: True)
    assert list(server.forget()) == [copy.id]


def test_what_the_other_end_of_a_link_lacks_is_sent_again_after_a_while() -> None:
    sender = links(1)
    _, [(_, copy)] = sender.send(Cast(1, 1), 0)
    sender.note(0, report(0, (0, 0), (0, 0, 0)))
    assert sender.missing(0, 10, pause=20) == []
    assert sender.missing(0, 20, pause=20) == [(1, copy)]
    assert sender.missing(0, 30, pause=20) == []
    sender.note(0, report(0, (0, 1), (0, 0, 0)))
    assert sender.missing(0, 60, pause=20) == []


def test_what_belongs_to_no_link_is_refused() -> None:
    member = links(1)
    assert member.fits(Cast(0, 1, vector=(1,)), 0)
    assert not member.fits(Cast(0, 1, vector=(1, 0, 0)), 0)
    assert not member.fits(Cast(2, 1, vector=(1,)), 2)
    assert member.fits(report(0, (0, 0), (0, 0, 0)), 0)
    assert not member.fits(report(0, (0, 0, 0), (0, 0, 0, 0)), 0)
    assert not member.fits(report(2, (), ()), 2)  # a mere heartbeat
    assert not member.fits(report(2, (0, 0), (0, 0, 0)), 2)


# crashes


@pytest.mark.parametrize("answer", [False, True])
@pytest.mark.parametrize(
    ("source", "server"),
    [pytest.param(1, 4, id="strong above"), pytest.param(5, 0, id="weak above for a while")],
)
def test_what_only_a_dead_server_had_comes_from_above_before_what_it_had_passed_on(
    source: int, server: int, answer: bool
) -> None:
    heir, other = server + 1, server + 2
    world = star(8)
    world.run(30)
    world.drops = lose_casts((server, other))
    world.say(source, [other])
    world.say(source, [heir, other])
    while (source, 2) not in world.delivered(heir):
        world.step()
    if answer:
        world.say(heir, [other])
        world.run(10)
    world.crash(server)
    world.settle(3000)
    assert world.delivered(other) == [(source, 1), (source, 2)] + [(heir, 1)] * answer
    world.sound()


def test_a_sender_and_its_server_that_crash_together_may_leave_a_hole() -> None:
    world = star(8)
    world.run(30)
    world.drops = lose_casts((0, 4))
    world.say(1, [5])
    world.say(1, [2])
    while not world.delivered(2):
        world.step()
    world.say(2, [5])
    world.crash(0)
    world.crash(1)
    world.settle(3000)
    assert world.delivered(5) == [(2, 1)]
    assert not world.check().ok
