"""How long a protocol that should rest may go on in vain, after all that was planned.

Virtual time costs little, and a protocol has as much of it as in the simulator. In real time somebody
waits: there it must also have been busy, so that one long timer is not taken for an endless one.
"""

from testbed.engines.mininet.hosts.counters import SharedCounters

NS_PER_S = 1_000_000_000
LONGEST_NS = 600 * NS_PER_S  # since the last delivery
LONGEST_REAL_NS = 12 * NS_PER_S
MANY_EVENTS = 10  # of all hosts, in that time


class Patience:
    """Looks at the counters of a run's hosts from time to time."""

    def __init__(self, counters: SharedCounters, virtual: bool) -> None:
        self._counters = counters
        self._longest, self._many = (LONGEST_NS, 1) if virtual else (LONGEST_REAL_NS, MANY_EVENTS)
        self._delivered, self._since, self._events = -1, 0, 0

    def is_lost(self, now: int, planned: int) -> bool:
        """Whether it lasts twice as long as it may; before, hosts are told that it is too long."""
        if (delivered := sum(self._counters.deliveries)) != self._delivered:
            self._delivered, self._since, self._events = delivered, now, self._happened()
        vain, passed = self._happened() - self._events, now - max(self._since, planned)
        if passed > self._longest and vain >= self._many:
            self._counters.vain[0] = vain
        return passed > 2 * LONGEST_NS

    def _happened(self) -> int:
        return sum(self._counters.events)
