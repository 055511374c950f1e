"""What is around a node: the network and the application. What they are to it is written down here."""

from collections.abc import Hashable
from typing import TYPE_CHECKING
from typing import Protocol as Interface

from testbed.protocols import Message
from testbed.topologies import Groups

if TYPE_CHECKING:
    from testbed.node.node import Node


class Runtime(Interface):
    """What an engine does for a node: it carries messages and keeps timers."""

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """Take a copy of a message to each of these processes."""

    def multicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """Take one copy of a message to all of these processes."""

    def set_timer(self, node: "Node", timer: Hashable, delay: int) -> None:
        """Call the node's ``timeout`` after a while."""

    def cancel_timer(self, node: "Node", timer: Hashable) -> None:
        """Do not call it."""


class Application(Interface):
    """What the application above a node does with its deliveries."""

    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        """The payload that a node multicasts at once, having delivered this message."""

    def audience(
        self, node: int, message: Message, processes: int, groups: Groups
    ) -> frozenset[int] | None:
        """The destinations of that answer, or None for all."""

    @property
    def waits(self) -> bool:
        """Whether what cannot be sent at once is sent later; otherwise it is never made."""
        return True
