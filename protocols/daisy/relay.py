"""Relaying between the groups of one process: what is relayed, when, and how long it is kept.

Section 3.1 of the paper: a causal server broadcasts in the group above what its group has delivered and
has destinations elsewhere, and in its group what the group above has delivered and has destinations
there; in the order of delivery, and, if ``safe``, once every member of the view where it comes from is
known to have it.
Section 3.1.1: it releases a message above when all destinations below have it, and below when it is
stable above.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ..base import Count, Effects
from ..groups.epochs import of as epoch_of
from ..groups.messages import Cast

if TYPE_CHECKING:
    from .hierarchy import Hierarchy

SETTLING = 5  # heartbeats in which those who seek a new group find it


class Relaying:
    """The rules for relaying; ``early_relay`` has others."""

    def __init__(self, daisy: Hierarchy) -> None:
        self.daisy = daisy
        self.waiting: dict[int, int] = {}  # since when messages from elsewhere wait at a level

    def stamped(self, cast: Cast) -> Cast:
        """A message of this process with what must be attached to it."""
        return cast

    def leaves(self, level: int, cast: Cast) -> bool:
        """Whether a message has destinations outside a group, or for who is away from it.

        One that is away may be back in another part of the group, which has taken its place above, or
        where groups are split, below another group. What follows the message may come to it from above,
        and so must the message.
        """
        view = self.daisy.groups[level].view
        if view is None or level + 1 == len(self.daisy.path):
            return False
        return cast.leaves(view.here, view.epochs)

    def note(self, level: int, cast: Cast) -> None:
        """Queue what a group has delivered for the groups above and below."""
        daisy = self.daisy
        if level + 1 < len(daisy.groups) and self.leaves(level, cast):
            daisy.up[level].append(cast)
        if level and cast.is_for(daisy.due(level - 1)):
            daisy.down[level - 1].append(cast)

    def relay(self, queue: deque[Cast], origin: int, target: int, now: int) -> Effects:
        """Relay from a level to the next, up or down, as far as that is possible now."""
        idle = not (queue or (target > origin and self.waiting))
        return iter(()) if idle else self._relay(queue, origin, target, now)

    def _relay(self, queue: deque[Cast], origin: int, target: int, now: int) -> Effects:
        daisy, groups = self.daisy, self.daisy.groups
        safe, up = daisy.settings.safe, target > origin
        if safe and not groups[origin].may_relay(now):
            return
        if not queue:
            self.waiting.pop(origin, None)
            return
        if up and not daisy.is_answered_for(origin):
            return  # answers to what newcomers send would not find them
        while queue and target < len(groups) and groups[target].open:
            if groups[target].has_seen(queue[0]):
                queue.popleft()
                continue
            if safe and not groups[origin].is_everywhere(queue[0].id):
                return
            if up and self.must_wait(origin, queue[0], now):
                return
            cast = queue.popleft()
            if up or cast.is_for(daisy.due(target)):
                yield Count("relays")
                yield from daisy.translate(target, groups[target].cast(cast, now), now)

    def must_wait(self, level: int, cast: Cast, now: int) -> bool:
        """Whether others should relay a message that once came from above and is not known there.

        It did if its sender is not in this group, or was in another one before. Others have its past.
        After ``grace`` they are taken to have crashed; if the group above had to be started again
        meanwhile, they have a few heartbeats to join it, counted from when its server has joined the
        next group.
        """
        view, source = self.daisy.groups[level].view, cast.source
        assert view is not None
        same = epoch_of(cast.epochs, source) == epoch_of(view.epochs, source)
        if source in view.roster and same:
            return False
        timing, above = self.daisy.local.timing, self.daisy.groups[level + 1]
        waited = now - self.waiting.setdefault(level, now)
        joined = above.reporting.above_since
        if level + 2 < len(self.daisy.path) and not above.reporting.above:
            return True
        settled = max(above.detector.since, joined) + SETTLING * timing.heartbeat
        return waited < timing.grace or now < settled

    def may_release(self, level: int, cast: Cast, now: int) -> bool:
        """Whether a message need not be kept at a level on this process's account."""
        groups = self.daisy.groups
        return self.daisy.arrived(level, cast, now) and (
            not groups[level].is_server
            or not self.leaves(level, cast)
            or (level + 1 < len(groups) and groups[level + 1].is_stable(cast))
        )
