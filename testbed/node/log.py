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
        """The protocol reports an event of its own."""
        return

    def leave(self, t: int, node: int) -> None:
        """The application has asked to be a member no longer."""
        return

    def join(self, t: int, node: int) -> None:
        """The application has asked to be a member."""
        return

    def crash(self, t: int, node: int) -> None:
        """The process is gone."""
        return

    def restart(self, t: int, node: int, incarnation: int) -> None:
        """The process has started again, with no memory of its past."""
        return
