"""What faults do to the links of an emulated network: other settings of their queues, ports down.

Changes of one instant are gathered and made together, by one message to the kernel; then they are
read back. A link that is down has both ports down, which its switches see and tell the controller;
what was under way on it is gone.
"""

from collections.abc import Iterator
from typing import Any

from testbed.engines.mininet import plan as names
from testbed.engines.mininet.kernel import netem, netlink
from testbed.engines.mininet.kernel.netlink import Netlink, Request
from testbed.engines.mininet.plan import Plan
from testbed.faults import Condition


class Conditions:
    """The conditions that the links are in, and were in; use it in the switches' namespace."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        # Every change: when by the run's clock, which link, and its condition from then on.
        self.history: list[dict[str, Any]] = []
        self._links = {(min(link.a, link.b), max(link.a, link.b)): link for link in plan.links}
        self._current: dict[tuple[int, int], Condition] = {}
        self._pending: dict[tuple[int, int], Condition] = {}
        self._reordered: set[tuple[int, int]] = set()

    def set(self, a: int, b: int, condition: Condition) -> None:
        """What a link is to be like as soon as changes are applied."""
        self._pending[a, b] = condition

    def apply(self, now: int) -> None:
        """Make all changes that were asked for, and see that they are made."""
        if not self._pending:
            return
        requests: list[Request] = []
        wanted: dict[str, tuple[int, netem.Queues]] = {}
        for pair, condition in self._pending.items():
            if condition.reordering:
                self._reordered.add(pair)
            reorders = pair in self._reordered
            queues = netem.queues(self._links[pair], condition, reorders=reorders)
            for node, other in (pair, pair[::-1]):
                name = names.switch_interface(node, self.plan.ports[node][other])
                wanted[name] = self.plan.indexes[name], queues
                requests += self._requests(pair, condition, name, *wanted[name])
            self.history.append({"t": now, "link": list(pair), **condition._asdict()})
        with Netlink() as kernel:
            kernel.ask(requests)
            netem.read_back(kernel, wanted, "a fault was to make it")
        self._current |= self._pending
        self._pending.clear()

    def _requests(
        self,
        pair: tuple[int, int],
        condition: Condition,
        name: str,
        index: int,
        queues: netem.Queues,
    ) -> Iterator[Request]:
        """What brings one end of a link into a condition."""
        before = self._current.get(pair, Condition())
        if before.up and not condition.up:
            yield netlink.link_down(index)
        if before._replace(up=True) != condition._replace(up=True):
            yield from netem.requests(index, queues, name, True)
        if condition.up and not before.up:
            yield netlink.link_up(index)
