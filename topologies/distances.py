"""All hop distances at once, by sets of nodes kept as the bits of integers.

After k rounds the set of node v holds all nodes within k hops of it; a round is one ``or`` for each
end of each link. For 600 nodes this takes milliseconds where 600 searches take half a second.
"""

from collections.abc import Iterable, Sequence


def neighbour_lists(nodes: int, edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The neighbours of each node."""
    result: list[list[int]] = [[] for _ in range(nodes)]
    for i, j in edges:
        result[i].append(j)
        result[j].append(i)
    return result


def pairs_by_distance(neighbours: Sequence[Sequence[int]]) -> list[int]:
    """The numbers of ordered pairs of nodes at 0, 1, 2, … hops, without pairs not connected.

    The length of the list minus one is thus the diameter (of the widest component).
    """
    within = [1 << node for node in range(len(neighbours))]
    counts = [len(neighbours)]
    known = counts[0]
    while True:
        wider = list(within)
        for node, others in enumerate(neighbours):
            for other in others:
                wider[node] |= within[other]
        total = sum(reached.bit_count() for reached in wider)
        if total == known:
            return counts
        counts.append(total - known)
        within, known = wider, total


def diameter(nodes: int, edges: Iterable[tuple[int, int]]) -> int:
    """The greatest hop distance."""
    return len(pairs_by_distance(neighbour_lists(nodes, edges))) - 1
