"""Lab 7: causal order for messages to groups that overlap.

As it is, messages carry no numbers, and whatever arrives is delivered.
"""

import struct
from typing import Any, ClassVar

from testbed.protocols import (
    Deliver,
    Discard,
    Effects,
    Hold,
    Message,
    MessageId,
    Place,
    Protocol,
    Send,
)
from testbed.protocols.wire import of_kind

Entry = tuple[int, int]  # a group, and one of its members


@of_kind(1)
class Stamped(Message):
    """A message to a group, with some numbers; both ends know which entry each of them belongs to."""

    numbers: tuple[int, ...]

    @property
    def control_size(self) -> int:
        """Four bytes for each number."""
        return 4 * len(self.numbers)

    def encode_control(self) -> bytes:
        """The numbers in a row."""
        return struct.pack(f"!{len(self.numbers)}I", *self.numbers)

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        """The same, read."""
        return {"numbers": struct.unpack(f"!{len(control) // 4}I", control)}


class Groups(Protocol):
    """One process. ``place.groups`` are all groups of the system, each the set of its members."""

    name: ClassVar[str] = "my-groups"
    takes_subsets: ClassVar[bool] = True
    needs_groups: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (Stamped,)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.groups = place.groups
        self.mine = [x for x, group in enumerate(place.groups) if self.me in group]

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """The application sends a message to one of this process's groups."""
        x = self.group_of(destinations)
        self.sent += 1  # the number of the message among all of this process, whatever their groups
        message = Stamped(self.me, self.sent, payload, now, x, numbers=())
        yield Send(tuple(sorted(self.groups[x] - {self.me})), message)
        yield Deliver(message)

    def receive(self, message: Stamped, sender: int, now: int) -> Effects:
        """The network brings a message; ``message.group`` is the group that it was sent to."""
        yield Deliver(message)

    def group_of(self, destinations: frozenset[int] | None) -> int:
        """The number of the group whose members these are."""
        members = frozenset(range(self.place.processes)) if destinations is None else destinations
        return self.groups.index(members)
