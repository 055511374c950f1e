"""What a group asks of the layer above it, where other groups may have messages for its members."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..wire import MessageId

if TYPE_CHECKING:
    from .messages import Cast
    from .succession import Joiner


class Above:
    """The answers for a group by itself, with nothing above."""

    def is_top(self) -> bool:
        """Whether there is no group above, so that all processes are below this one."""
        return True

    def gather(self, processes: frozenset[int], now: int) -> list[Cast] | None:
        """What is in transit to the group, or to these, which come to it; None if that is not known."""
        return []

    def awaited(self, processes: frozenset[int]) -> frozenset[MessageId]:
        """What is in transit to these as well, and cannot be gathered yet."""
        return frozenset()

    def admits(self, joiner: Joiner) -> bool:
        """Whether a joiner belongs to this group, and not to another one."""
        return True

    def relayers(self, cast: Cast) -> Collection[int]:
        """The members that relay a message once all others have it."""
        return ()

    def needs_this_process(self) -> bool:
        """Whether something would be lost if this process left now."""
        return False

    def find(self, name: MessageId) -> Cast | None:
        """A message that another group of this process keeps."""
        return None

    def kept(self) -> Iterable[Cast]:
        """What this process keeps above, and not in this group."""
        return ()
