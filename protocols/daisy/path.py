"""The message that says which groups are above a group, or which group is the right one instead.

Path  a process to ask, then for each group, from the level of the right one or the next on: its
      number, how many processes are below it, and which
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from ..groups.messages import GroupMessage, ordered, words_of
from ..wire import WireError

Steps = tuple[tuple[int, frozenset[int]], ...]  # groups, and the processes below each


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Path(GroupMessage):
    """Above this group there are these; or the receiver should seek the first of them instead.

    The numbers say which: they begin at the group's own level or at the next. ``contact`` serves there.
    """

    contact: int
    steps: Steps = ()

    kind: ClassVar[int] = 13

    @override
    def words(self) -> tuple[int, ...]:
        steps = ((number, len(roster), *sorted(roster)) for number, roster in self.steps)
        return (self.contact, *(word for step in steps for word in step))

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        contact, *rest = words_of(control, 1)
        steps = []
        if contact >= processes:
            raise WireError(f"{contact} is no process")
        while rest:
            if len(rest) < 2 or len(rest) < 2 + rest[1]:
                raise WireError(f"{len(rest)} integers name no group and the processes below it")
            end = 2 + rest[1]
            steps.append((rest[0], frozenset(ordered(rest[2:end], processes))))
            rest = rest[end:]
        return {"contact": contact, "steps": tuple(steps)}
