"""What a group asks of the layer above it, where other groups may have messages for its members."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..wire import MessageId
from .messages import RETURNED

if TYPE_CHECKING:
    from .messages import Cast
    from .view import Member


class Above:
    """The answers for a group by itself, with nothing above."""

    def gather(self, processes: frozenset[int], now: int) -> list[Cast] | None:
        """What is in transit to the group, or to these, which come to it; None if that is not known."""
        return []

    def answers_for(self, process: int) -> bool:
        """Whether somebody above answers for a process."""
        return False

    def unheard_of(self) -> frozenset[int]:
        """Those in the group whom the one above has not heard of yet."""
        return frozenset()

    def may_keep_for(self, process: int) -> bool:
        """Whether something may be in transit from above to a process, also if it has just come."""
        return False

    def may_be_known(self, how: int) -> bool:
        """Whether those who join in this way may be known above, and not in this group."""
        return how == RETURNED

    def can_tell(self) -> bool:
        """Whether it is known now for whom somebody above answers."""
        return True

    def is_done(self, name: MessageId) -> bool:
        """Whether a message was above, and nobody needs it there any more."""
        return False

    def may_be_elsewhere(self) -> bool:
        """Whether one that is away below a member may be below another group by now."""
        return False

    def admits(self, joiner: Member, how: int) -> bool:
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
