"""The configurations and paths that the paper's Figures 3, 4 and 5 show.

Baldoni, Friedman & van Renesse 1996, sections 3.1 and 3.2. Figure 2 is in ``test_scenes``.
"""

from dataclasses import replace

from testbed.protocols import MessageId
from testbed.protocols.daisy.tree import LEVEL
from testbed.protocols.groups.messages import Cast
from tests.protocols.daisy.daisies import GROUPS, QUICK, SERVERS, TOP, Daisies, watch


def path_of(world: Daisies, source: int, to: list[int]) -> list[tuple[int, int]]:
    """Who broadcasts a message in which group, in the order of the first copies."""
    casts = watch(world, Cast)
    name = world.say(source, to)
    world.settle()
    world.sound()
    assert {p for p in world.live() if name in world.delivered(p)} == set(to)
    return list(dict.fromkeys((sender, c.group) for sender, _, c in casts if c.id == name))


def heard_of(world: Daisies, group: int, name: MessageId) -> set[int]:
    """The members of a group that have seen a message."""
    return {
        p
        for p in world.live()
        for g in world.protocols[p].groups
        if g.number == group and name in g.kept.names()
    }


# Figure 3


def test_every_process_is_in_one_local_group_and_the_causal_servers_form_a_group() -> None:
    world = Daisies(12)
    world.run(50)
    for number, members in enumerate(GROUPS):
        for process in members:
            assert world.group(process).number == number
            assert world.view(process) == tuple(members)
            assert len(world.protocols[process].groups) == (2 if process in SERVERS else 1)
    assert {world.view(server, 1) for server in SERVERS} == {SERVERS}


def test_a_message_goes_through_the_two_causal_servers_and_three_groups() -> None:
    world = Daisies(12)
    world.run(50)
    assert path_of(world, 1, [6]) == [(1, 0), (0, TOP), (4, 1)]
    name = MessageId(1, 1)
    assert heard_of(world, 0, name) == {0, 1, 2, 3}  # also those for whom it is not
    assert heard_of(world, TOP, name) == {0, 4, 8}
    assert heard_of(world, 1, name) == {4, 5, 6, 7}
    assert heard_of(world, 2, name) == set()
    assert path_of(world, 4, [8]) == [(4, 1), (4, TOP), (8, 2)]  # between causal servers
    assert path_of(world, 1, [2, 3]) == [(1, 0)]


# Figure 4


def local_groups(world: Daisies) -> set[tuple[int, ...]]:
    """The views of all processes that have not left; they agree."""
    here = [p for p in world.live() if not world.group(p).out]
    views = {world.view(p) for p in here}
    assert sorted(p for view in views for p in view) == here
    return views


def grown(world: Daisies, process: int) -> None:
    """A process joins, and all who are there exchange messages with it."""
    world.join(process)
    world.run(800)
    here = [p for p in world.live() if not world.group(p).out]
    for sender in here:
        world.say(sender, here)
    world.settle()
    world.run(800)
    assert all(len(world.delivered(p)) >= len(here) for p in here)


def test_a_singleton_grows_by_joins_and_is_split_until_it_is_a_daisy() -> None:
    world = Daisies(9, settings=replace(QUICK, group_size=9, split_above=4))
    for process in range(1, 9):
        world.leave(process)
    world.run(3000)
    assert local_groups(world) == {(0,)}  # Figure 4.a
    assert world.view(0, 1) == (0,)  # the only causal server
    for process in (1, 2, 3):
        grown(world, process)
        assert local_groups(world) == {tuple(range(process + 1))}  # Figure 4.b
    grown(world, 4)
    first, second = sorted(local_groups(world), key=len, reverse=True)  # Figure 4.c
    assert (len(first), len(second)) == (3, 2)
    assert first[0] == 0
    assert set(world.view(0, 1)) == {0, second[0]}
    for process in range(5, 9):
        grown(world, process)
    groups = local_groups(world)
    assert {len(group) for group in groups} <= {2, 3, 4}
    assert len(groups) > 2
    assert set(world.view(0, 1)) == {group[0] for group in groups}
    world.sound()
    assert not world.has_history()


# Figure 5


def test_a_message_crosses_three_daisies_by_way_of_their_hyper_servers() -> None:
    world = Daisies(27, settings=replace(QUICK, group_size=3, levels=3))
    world.run(50)
    hyper = 2 * LEVEL
    assert {world.view(p, 2) for p in (0, 9, 18)} == {(0, 9, 18)}
    assert {world.view(p, 1) for p in (9, 12, 15)} == {(9, 12, 15)}  # the second daisy's servers
    path = path_of(world, 4, [13])
    assert path == [(4, 1), (3, LEVEL), (0, hyper), (9, LEVEL + 1), (12, 4)]
    assert world.meter.counted["broadcasts"] == 5
    for number in {0, 2, 3, *range(5, 9), LEVEL + 2}:
        assert heard_of(world, number, MessageId(4, 1)) == set()
    inside = path_of(world, 4, [7])  # within one daisy no hyper-server broadcasts it
    assert inside == [(4, 1), (3, LEVEL), (6, 2)]
    assert path_of(world, 9, [18]) == [(9, 3), (9, LEVEL + 1), (9, hyper), (18, LEVEL + 2), (18, 6)]
