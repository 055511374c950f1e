"""Daisies with one mistake each, all of which were made once; ``testbed fuzz`` finds each."""

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from ..daisy import Daisy
from ..groups.group import Group
from ..groups.messages import Cast
from ..groups.succession import Succession
from ..groups.view import Member, View


class Reentrant(Daisy):
    """Relays while a message is being handed up to the application.

    Broken rule: state is consistent at every ``yield``. What was delivered together with the message
    comes after what an answer makes the server relay, and is then dropped as a duplicate.
    """

    name: ClassVar[str] = "broken-reentrant"

    @property
    def handing_up(self) -> bool:
        """Never."""
        return False

    @handing_up.setter
    def handing_up(self, value: bool) -> None:
        """Forget it."""


class _NoNewcomers(Succession):
    @override
    def newcomers(self, target: Sequence[Member]) -> frozenset[int]:
        return frozenset()


class Hospitable(Daisy):
    """Gives a newcomer all that its group keeps.

    Broken rule: what was cast before a process was known in a group is not for it. What the group
    above still keeps comes down later, in the wrong order.
    """

    name: ClassVar[str] = "broken-hospitable"

    @override
    def known_above(self, level: int, cast: Cast) -> Cast:
        return cast

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.succession = _NoNewcomers(group)
        return group


class _Premature(Group):
    @override
    def missing(self) -> frozenset[int]:
        return frozenset() if self.view is None else self.view.away


class Premature(Daisy):
    """Says above that a process is back as soon as a view with it is agreed on.

    Broken rule: only a member that is known to be in the view has what was kept for it. The groups
    above forget that, and if the server crashes it is lost.
    """

    name: ClassVar[str] = "broken-premature"

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        for group in self.groups:
            group.__class__ = _Premature

    @override
    def _group(self, level: int, me: Member, view: View | None = None, now: int = 0) -> Group:
        group = super()._group(level, me, view, now)
        group.__class__ = _Premature
        return group
