"""Groups that overlap, and the graph of groups."""

import random
from collections.abc import Callable

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.topologies import GROUPINGS, Grouping, Groups, TopologyError, group_graph, has_cycle
from testbed.topologies.groups import Named, RandomGroups, RingOfGroups, StarOfGroups, TreeOfGroups

SEEDS = st.integers(0, 1000)


def generate(grouping: Grouping, nodes: int, seed: int = 1) -> Groups:
    return grouping.generate(nodes, random.Random(seed))


def test_the_papers_example_is_a_triangle() -> None:
    groups = generate(GROUPINGS["triangle"](), 3)
    assert groups == {"g1": {0, 1}, "g2": {1, 2}, "g3": {0, 2}}
    assert sorted(map(sorted, group_graph(groups).edges)) == [
        ["g1", "g2"],
        ["g1", "g3"],
        ["g2", "g3"],
    ]
    assert has_cycle(groups)


def test_two_groups_with_many_members_in_common_make_no_cycle() -> None:
    assert not has_cycle({"a": frozenset({0, 1, 2}), "b": frozenset({1, 2, 3})})


def test_a_process_in_three_groups_makes_a_cycle() -> None:
    assert has_cycle({name: frozenset({0, i}) for i, name in enumerate("abc", 1)})


@given(SEEDS, st.integers(1, 8), st.integers(2, 6), st.integers(0, 6))
def test_random_groups_have_the_size_and_the_overlap_that_was_asked_for(
    seed: int, count: int, size: int, overlap: int
) -> None:
    overlap = min(overlap, size - 1)
    groups = generate(RandomGroups(count, size, overlap), 60, seed)
    earlier: frozenset[int] = frozenset()
    for number, members in enumerate(groups.values()):
        assert len(members) == size
        assert len(members & earlier) == (min(overlap, len(earlier)) if number else 0)
        earlier |= members
    assert len({*groups.values()}) == count


@given(SEEDS)
def test_groups_that_are_drawn_from_all_processes_are_all_different(seed: int) -> None:
    groups = generate(RandomGroups(6, 2), 4, seed)  # all pairs that there are
    assert len({*groups.values()}) == 6


@given(st.integers(3, 9), st.integers(1, 3), st.integers(0, 20))
def test_a_ring_of_groups_is_one_cycle_through_all_processes(
    count: int, shared: int, more: int
) -> None:
    groups = generate(RingOfGroups(count, shared), count * (shared + 1) + more)
    assert nx.utils.graphs_equal(group_graph(groups), nx.cycle_graph([*groups]))
    assert frozenset().union(*groups.values()) == set(range(count * (shared + 1) + more))
    names = [*groups]
    for one, other in zip(names, [*names[1:], names[0]], strict=True):
        assert len(groups[one] & groups[other]) == shared


@given(st.integers(3, 8), st.integers(2, 5))
def test_a_star_of_groups_has_its_centre_last(count: int, size: int) -> None:
    graph = group_graph(generate(StarOfGroups(count, size), 60))
    assert sorted(dict(graph.degree).values()) == [1] * (count - 1) + [count - 1]
    assert graph.degree[f"g{count}"] == count - 1


@given(st.integers(1, 12), st.integers(3, 5), st.integers(1, 2))
def test_a_tree_of_groups_is_connected_and_has_no_cycle(count: int, size: int, arity: int) -> None:
    groups = generate(TreeOfGroups(count, size, arity), 60)
    assert nx.is_tree(group_graph(groups))
    assert {len(members) for members in groups.values()} == {size}


def test_named_groups_keep_their_names() -> None:
    assert generate(Named({"a": [0, 1], "b": [1, 2]}), 3) == {"a": {0, 1}, "b": {1, 2}}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Named({}), "name at least one group"),
        (lambda: Named({"a": [0]}), "group a must have at least 2 members"),
        (lambda: Named({"a": [0, 1], "b": [1, 0]}), "groups a and b have the same members"),
        (lambda: generate(Named({"a": [0, 9]}), 3), "group a has member 9"),
        (lambda: RandomGroups(2, 4, 5), "overlap = 5 is out of range"),
        (lambda: generate(RandomGroups(3, 4, 1), 9), "needs 10 processes, and there are 9"),
        (lambda: generate(RandomGroups(7, 2), 4), "no 7 different groups of 2"),
        (lambda: RingOfGroups(2), "groups"),
        (lambda: generate(RingOfGroups(4, 2), 7), "needs 8 processes"),
        (lambda: TreeOfGroups(5, 3, 3), "arity = 3 is out of range"),
        (lambda: generate(StarOfGroups(5, 4), 15), "needs 16 processes"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        make()
