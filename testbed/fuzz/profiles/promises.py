"""What the daisy promises to survive: the limits within which its trials are drawn.

- Relaying is ``safe``, or nobody crashes, leaves or is cut off. Where not all members of a group get a
  message, fewer may be gone: one, or at most ``resilience``; then nobody is cut off as well, nor
  anybody for ``grace_ms`` or longer. Except for short periods, packets are delayed or lost so seldom
  that views last: where some packets are late and others are not, by at most a heartbeat on the whole
  way. And ``patience_ms`` is longer than a round trip, over all links on which everything is late.
- A process that was cut off for longer than ``grace_ms`` and is gone before it is back leaves a gap. So
  where anybody crashes or leaves, all periods in which processes are cut off are shorter than that,
  taken together. So they are where levels grow: two parts that both split groups may not meet again.
- A group is not given what is for others only. If those who have that are all cut off, for longer than
  ``grace_ms``, the rest goes on without it. So where some messages are for some processes only, all
  these periods together are shorter than that, or they all strike members of one local group.
- Nobody is cut off for ``forget_ms`` or longer, until the groups have admitted it again; where groups
  are merged, also one that moves to a group that has crashed, for three times ``grace_ms``. Links are
  slow once at most: two slow periods at a time would delay a packet far beyond the end of both.
- A view of servers that crashes as a whole, with a local group, leaves a gap. So if all members of a
  local group are gone at some time, crashed or left, then nobody was cut off, and one of the first
  members of each group of servers stays. If none of these stays, nobody was cut off either. Where
  groups are split and merged, fewer processes are gone than the smallest group can have, or one at
  most.
- The last member of a local group does not leave where groups are merged.
- Over the reliable channel nobody crashes or leaves: a process that waits for an acknowledgement of one
  that is gone cannot send more for long. Its window and retries are at least the defaults: it gives up
  a peer that is cut off for longer. It retransmits within half of ``patience_ms``: all
  that follows a lost packet, heartbeats too, waits for it.
"""

from collections.abc import Iterator
from typing import Any

import networkx as nx

from testbed.experiment import Scenario
from testbed.experiment.network import Network
from testbed.faults import (
    Crash,
    Duplication,
    Fault,
    Leave,
    LinkDown,
    Loss,
    Partition,
    Pause,
    RatedFault,
    Reordering,
    Slow,
)
from testbed.fuzz.elements import losses, rounded
from testbed.fuzz.profiles.scenes import DUPLICATION_MOST, LOSS_MOST
from testbed.protocols.channel import Reliable
from testbed.protocols.daisy.tree import LEVEL, daisy

BACK = 2  # times the patience, after which all groups have one that was cut off again
MOVING = 3  # times the grace, for which one seeks the group that it was sent to


def promises(scenario: Scenario) -> bool:
    """Whether the daisy promises to survive an experiment."""
    return _views_last(scenario) and _is_survivable(scenario)


def _views_last(scenario: Scenario) -> bool:
    """Whether most heartbeats arrive in time, except for short periods."""
    experiment, network = scenario.experiment, scenario.network
    s, faults, diameter = experiment.settings, experiment.faults, nx.diameter(network.graph)
    least_ms = least_patience_ms(network, s.heartbeat_ms) + 2 * _late_ms(scenario)
    if s.patience_ms < least_ms or _jitter_ms(scenario) > s.heartbeat_ms:
        return False
    if any(f.per_s is not None or not _bearable(f, s.heartbeat_ms, diameter) for f in faults):
        return False
    return sum(isinstance(fault, Slow) for fault in faults) <= 1


def _is_survivable(scenario: Scenario) -> bool:
    """Whether somebody who is present has what those lack who are cut off, and go or are back."""
    experiment, processes = scenario.experiment, scenario.network.processes
    s, faults, channel = experiment.settings, experiment.faults, experiment.channel
    cut = sum(fault.for_ms or 0 for fault in faults if _cuts_off(fault))
    going = [fault for fault in faults if isinstance(fault, Crash | Leave)]
    gone = max(losses(going, processes), key=len)
    short = gone or s.max_levels or _may_miss(scenario)
    most = s.forget_ms - BACK * s.patience_ms - (MOVING * s.grace_ms if s.merge_below else 0)
    if cut >= (min(s.grace_ms, most) if short else most) or len(gone) > _most_gone(s, processes):
        return False
    if channel and (gone or channel.max_rto_ms > 0.6 * s.patience_ms or _gives_up(channel)):
        return False
    if cut and (not s.safe or (s.inside != "all" and (gone or cut >= s.grace_ms))):
        return False
    left = any(isinstance(fault, Leave) for fault in going)
    return all(
        _groups_survive(processes, s, gone, left, cut > 0) for gone in losses(going, processes)
    )


def _gives_up(channel: Any) -> bool:
    """Whether the channel takes a peer that is cut off for crashed, or is full of heartbeats."""
    least = Reliable.Settings()
    return bool(channel.retries < least.retries or channel.window < least.window)


def _groups_survive(processes: int, s: Any, gone: frozenset[int], left: bool, cut: bool) -> bool:
    tree = daisy(processes, s.group_size, s.levels, s.split_above is not None)
    local = [roster for number, roster in tree.rosters.items() if number < LEVEL]
    if s.split_above is not None or s.merge_below:
        sizes = [len(roster) for roster in local]
        if s.split_above is not None:
            sizes.append((s.split_above + 1) // 2)
        alone = len(gone) <= 1 and not (left and s.merge_below)
        return alone or len(gone) < min(sizes)
    servers = [set(members) for number, members in tree.members.items() if number >= LEVEL]
    all_gone = any(members <= gone for members in servers)
    if len(local) == 1 or not any(roster <= gone for roster in local):
        return not (cut and all_gone)
    return not cut and not all_gone


def _most_gone(s: Any, processes: int) -> int:
    """How many processes may crash or leave, given how many members keep a message."""
    if s.early or not s.safe:
        return 0
    most = {"all": processes, "server": 1, "recipients": int(s.resilience)}
    return most[s.inside]


def _cuts_off(fault: Fault) -> bool:
    return isinstance(fault, LinkDown | Pause | Slow) or (
        isinstance(fault, Loss) and fault.for_ms is not None
    )


def _may_miss(scenario: Scenario) -> bool:
    """Whether members of several local groups may be cut off from all who have a message for them."""
    experiment, graph = scenario.experiment, scenario.network.graph
    if all("to" not in message for message in experiment.workload.send):  # type: ignore[attr-defined]
        return False
    struck = [_struck(fault, graph) for fault in experiment.faults if _cuts_off(fault)]
    groups = experiment.protocol.local_groups(scenario.place(0), experiment.settings)
    return not any(frozenset().union(*struck) <= group for group in groups)


def _struck(fault: Fault, graph: "nx.Graph[int]") -> frozenset[int]:
    """Who is cut off while the others still hear each other; all, if that is not known."""
    everybody = frozenset(graph.nodes)
    if isinstance(fault, Pause) and isinstance(fault.node, int):
        return frozenset({fault.node})
    if not isinstance(fault, Partition) or isinstance(fault.nodes, str):
        return everybody
    sides = sorted((frozenset(fault.nodes), everybody.difference(fault.nodes)), key=len)
    return sides[0] if nx.is_connected(graph.subgraph(sides[1])) else everybody


def _bearable(fault: Fault, heartbeat_ms: float, diameter: int) -> bool:
    """Whether processes still hear heartbeats of each other, or the fault ends."""
    if isinstance(fault, Reordering):
        return fault.late_ms <= heartbeat_ms
    if isinstance(fault, Duplication):
        return fault.rate * diameter <= DUPLICATION_MOST
    if isinstance(fault, LinkDown | Pause | Slow):
        return fault.for_ms is not None
    return not (isinstance(fault, RatedFault) and fault.for_ms is None) or (
        fault.rate * diameter <= LOSS_MOST
    )


def _late_ms(scenario: Scenario) -> float:
    """How late a packet may be that nothing overtakes: all are late, or the channel keeps order."""
    keeps_order = scenario.experiment.channel is not None
    return sum(ms for fault, ms in _lateness(scenario) if fault.rate == 1 or keeps_order)


def _jitter_ms(scenario: Scenario) -> float:
    """How much later than another a packet may be that takes the same way."""
    return sum(ms for fault, ms in _lateness(scenario) if fault.rate < 1)


def _lateness(scenario: Scenario) -> Iterator[tuple[Reordering, float]]:
    """The faults that make packets late, and by how much on the whole way."""
    crossed = nx.diameter(scenario.network.graph)
    for fault in scenario.experiment.faults:
        if isinstance(fault, Reordering):
            yield fault, fault.late_ms * (crossed if fault.link is None else 1)


def least_patience_ms(network: Network, heartbeat_ms: float) -> float:
    """A round trip and three heartbeats."""
    longest = max(link["delay_ns"] for _, _, link in network.graph.edges(data=True)) / 1e6
    return rounded(3 * heartbeat_ms + 3 * longest * nx.diameter(network.graph))
