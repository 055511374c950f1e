"""A log in memory, of events as the oracle takes them."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from testbed.check.logs import Event
from testbed.node.log import Log
from testbed.protocols import MessageId


class MemoryLog(Log):
    """The events of all nodes, each node's in its own order."""

    def __init__(self) -> None:
        self.events: defaultdict[int, list[Event]] = defaultdict(list)

    @override
    def send(
        self,
        t: int,
        node: int,
        name: MessageId,
        to: frozenset[int] | None,
        payload: int,
        control: int = 0,
    ) -> None:
        self.events[node].append(Event("send", *name, to, t))

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        self.events[node].append(Event("deliver", source, seq, None, t))

    @override
    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        self.events[node].append(Event(event, t=t, facts=facts or None))
