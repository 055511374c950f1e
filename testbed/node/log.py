"""What a node may write down of a run: the contract of all logs, on disk or in memory."""

from collections.abc import Mapping
from typing import Any
from typing import Protocol as Interface

from testbed.protocols import MessageId


class Log(Interface):
    """A log of events; ``t`` is the run's clock in nanoseconds.

    A log that derives from this one writes down what it overrides, and ignores the rest.
    """

    def send(
        self,
        t: int,
        node: int,
        name: MessageId,
        to: frozenset[int] | None,
        payload: int,
        control: int = 0,
    ) -> None:
        """The application has multicast a message to these processes, or to all.

        ``payload`` and ``control`` are the bytes of data and of control information in it.
        """
        return

    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        """The application has been given a message."""
        return

    def hold(self, t: int, node: int, name: MessageId, waits_for: MessageId | None) -> None:
        """A message is held back until another has been delivered, if that is known by name."""
        return

    def note(self, t: int, node: int, event: str, facts: Mapping[str, Any]) -> None:
        """Another event: "join", "leave", "crash", "restart", or one that a protocol reports."""
        return
