"""What each switch must be told, computed from the network alone.

Process i is host h<i> at switch s<i>. A switch looks at IP addresses only, so a fragment goes where
its datagram goes, and everything that no rule names is dropped.

- A packet for a host follows that host's shortest-path tree; the last switch writes the host's MAC
  address into it, because hosts do no ARP and address every frame to a gateway that is not there.
- A packet for a multicast address goes down the tree of its source, as far as there are receivers. In
  each switch of that tree a group of type ALL copies it to the children, and to the switch's own host,
  for which the copy is re-addressed: to a host, a multicast looks like a datagram that was sent to it
  alone.

The trees are those of the simulator. Where links are down, they are the trees of what is left, and
there is no rule for a host that cannot be reached. Nor is there one for packets that nobody sends: on
the way to a host only the switches that its senders' packets pass have a rule, and only senders of
multicasts have a tree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from testbed.engines.mininet.plan import HOST_PORT, Plan, host_ip, host_mac
from testbed.engines.mininet.ways import Ways
from testbed.topologies.routing import UNREACHED, Metric, RoutingTree, children, shortest_path_trees

if TYPE_CHECKING:
    from testbed.topologies import Graph

Arc = tuple[int, int]  # two switches that a link joins, the smaller number first


class Match(NamedTuple):
    """Which IPv4 packets a rule is for."""

    destination: str
    source: str | None = None


class Output(NamedTuple):
    """Send out of a port, perhaps with other addresses."""

    port: int
    eth_dst: str | None = None
    ipv4_dst: str | None = None


class ToGroup(NamedTuple):
    """Do what the group of this number says."""

    group: int


Action = Output | ToGroup


@dataclass
class SwitchRules:
    """All rules of one switch: flows by what they match, and the copies that each group makes."""

    flows: dict[Match, Action] = field(default_factory=dict)
    groups: dict[int, tuple[Output, ...]] = field(default_factory=dict)


def rules(
    plan: Plan,
    metric: Metric = "hops",
    down: Collection[Arc] = (),
    ways: Ways | None = None,
) -> list[SwitchRules]:
    """The rules of every switch while some links are down; without ``ways``, for all of them."""
    ways = ways or Ways.all(plan.nodes)
    switches = [SwitchRules() for _ in range(plan.nodes)]
    ips, macs = [*map(host_ip, range(plan.nodes))], [*map(host_mac, range(plan.nodes))]
    own_copies = [Output(HOST_PORT, mac, ip) for mac, ip in zip(macs, ips, strict=True)]
    for root, tree in enumerate(trees(plan, metric, down)):
        senders, unicast = ways.senders[root], Match(ips[root])
        passed = on_the_way(tree, root, senders)
        for node in passed:
            switches[node].flows[unicast] = Output(plan.ports[node][tree[node]])
        if passed or root in senders:
            switches[root].flows[unicast] = Output(HOST_PORT, macs[root])
        if root not in ways.multicasters:
            continue
        below = children(tree)
        for number, (ip, members) in enumerate(plan.audiences):
            if root not in members:
                continue
            group, reached = number * plan.nodes + root + 1, on_the_way(tree, root, members)
            for node in (root, *reached):
                copies = [
                    Output(plan.ports[node][child]) for child in below[node] if child in reached
                ]
                if node != root and node in members:  # the source needs no copy of its own
                    copies.append(own_copies[node])
                if copies:
                    switches[node].flows[Match(ip, ips[root])] = ToGroup(group)
                    switches[node].groups[group] = tuple(copies)
    return switches


def on_the_way(tree: RoutingTree, root: int, members: Collection[int]) -> dict[int, None]:
    """The switches between the root of a tree and these hosts, theirs among them, the root's not."""
    found: dict[int, None] = {}
    for node in members:
        while node not in found and node != root and tree[node] != UNREACHED:
            found[node] = None
            node = tree[node]
    return found


def trees(plan: Plan, metric: Metric, down: Collection[Arc] = ()) -> list[RoutingTree]:
    """The shortest-path trees of all switches over the links that are not down."""
    graph = _Adjacency({switch: {} for switch in range(plan.nodes)})
    for link in plan.links:
        if arc(link.a, link.b) not in down:
            graph[link.a][link.b] = graph[link.b][link.a] = {"delay_ns": link.delay_ns}
    return shortest_path_trees(cast("Graph", graph), metric)


def arc(a: int, b: int) -> Arc:
    """The link between two switches, the smaller number first."""
    return (a, b) if a < b else (b, a)


class _Adjacency(dict[int, dict[int, dict[str, int]]]):
    """As much of a networkx graph as routing asks for: the real one takes long to import."""

    def adjacency(self) -> Iterator[tuple[int, dict[int, dict[str, int]]]]:
        return iter(self.items())


@dataclass(frozen=True)
class Change:
    """How a switch gets from one set of rules to another."""

    add_groups: dict[int, tuple[Output, ...]]
    modify_groups: dict[int, tuple[Output, ...]]
    set_flows: dict[Match, Action]  # a flow that is set replaces one with the same match
    remove_flows: tuple[Match, ...]
    remove_groups: tuple[int, ...]

    def __len__(self) -> int:
        """Count the rules that change."""
        flows = len(self.set_flows) + len(self.remove_flows)
        return flows + len(self.add_groups) + len(self.modify_groups) + len(self.remove_groups)


def change(before: SwitchRules, after: SwitchRules) -> Change:
    """What has to be changed in a switch, and nothing else."""
    return Change(
        add_groups={g: c for g, c in after.groups.items() if g not in before.groups},
        modify_groups={
            g: c for g, c in after.groups.items() if g in before.groups and before.groups[g] != c
        },
        set_flows={m: a for m, a in after.flows.items() if before.flows.get(m) != a},
        remove_flows=tuple(m for m in before.flows if m not in after.flows),
        remove_groups=tuple(g for g in before.groups if g not in after.groups),
    )
