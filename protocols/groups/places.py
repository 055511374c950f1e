"""Which processes are members and, as far as is known, below no group.

Somebody may have been admitted to a view that does not prevail, or be split off and not be answered for
by its new server yet. Others may have heard of it, and send it messages. As long as it is not known who
answers for it, every group keeps these, and relays them down as well as up: whichever group has it in
the end, or has it again, has delivered them in causal order.

The group at the top knows all who are below some group, and in which epoch: one that has begun a new
one may be below another group. Others learn that from it, by way of their servers; meanwhile whoever
has begun a new epoch counts as below none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from .epochs import Pairs, is_member, of

if TYPE_CHECKING:
    from .group import Group

NOBODY: frozenset[int] = frozenset()


class Places:
    """What one member of a group knows of that."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.elsewhere: dict[int, int] = {}  # in which epoch who is below another group
        self.since: dict[int, int] = {}  # when somebody was found to be below none

    def unknown(self) -> frozenset[int]:
        """The processes that are, as far as is known, below no group."""
        epochs, view = self.group.epochs, self.group.view
        if view is None:
            return NOBODY
        late = frozenset([p for p, e in epochs.pairs if is_member(e) and e > of(view.epochs, p)])
        if self.group.above.is_top():
            return epochs.members - (view.roster - late)
        known = self.elsewhere
        return frozenset([p for p in late if known.get(p) != epochs.of(p)])

    def learn(self, told: Pairs, missing: Collection[int]) -> None:
        """Note who is below some group: all in these epochs, but for those that are missing."""
        for process, epoch in told:
            if process in missing:
                self.elsewhere.pop(process, None)
            else:
                self.elsewhere[process] = epoch

    def lately(self, now: int, forget: int) -> frozenset[int]:
        """Those who are below no group, unless that was so for long: they may have crashed."""
        if not (unknown := self.unknown()):
            self.since.clear()
            return NOBODY
        self.since = {p: self.since.get(p, now) for p in unknown}
        return frozenset([p for p, since in self.since.items() if now - since < forget])
