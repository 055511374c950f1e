"""Does not think of packets that come twice."""

import struct
from typing import Any, ClassVar

from testbed.protocols import (
    Deliver,
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
    """``known[x, k]`` is the number of the last message of k to group x that this process knows of.

    Of its own groups, that is the last one delivered here.
    """

    name: ClassVar[str] = "my-groups"
    takes_subsets: ClassVar[bool] = True
    needs_groups: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (Stamped,)

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.sent = place.base
        self.groups = place.groups
        self.mine = [x for x, group in enumerate(place.groups) if self.me in group]
        self.short = not has_cycle(place.groups)
        self.known: dict[Entry, int] = {
            (x, k): 0 for x, group in enumerate(self.groups) for k in sorted(group)
        }
        self.waiting: list[Stamped] = []

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        """Attach what was known before the message was sent."""
        x = self.group_of(destinations)
        self.sent += 1
        numbers = tuple(self.known[entry] for entry in self.told(self.me))
        self.known[x, self.me] = self.sent
        message = Stamped(self.me, self.sent, payload, now, x, numbers=numbers)
        yield Send(tuple(sorted(self.groups[x] - {self.me})), message)
        yield Deliver(message)

    def told(self, process: int) -> list[Entry]:
        """The entries that messages of a process have numbers for."""
        return [(x, k) for x, k in self.known if not self.short or process in self.groups[x]]

    def receive(self, message: Stamped, sender: int, now: int) -> Effects:
        """Keep it, then deliver whatever can be delivered, until nothing more can."""
        self.waiting.append(message)
        if missing := self.missing(message):
            yield Hold(message, missing)
        while ready := next((m for m in self.waiting if not self.missing(m)), None):
            self.waiting.remove(ready)
            self.learn(ready)
            yield Deliver(ready)

    def past(self, message: Stamped) -> dict[Entry, int]:
        """What the sender knew."""
        return dict(zip(self.told(message.source), message.numbers, strict=True))

    def missing(self, message: Stamped) -> MessageId | None:
        """A message to a group of this process that must be delivered before, if there is one."""
        for (x, k), number in self.past(message).items():
            if x in self.mine and self.known[x, k] < number:
                return MessageId(k, number)
        return None

    def learn(self, message: Stamped) -> None:
        """Merge what the sender knew, also of groups of others, and count the message."""
        for entry, number in self.past(message).items():
            self.known[entry] = max(self.known[entry], number)
        self.known[message.group, message.source] = message.seq

    def group_of(self, destinations: frozenset[int] | None) -> int:
        """The number of the group whose members these are."""
        members = frozenset(range(self.place.processes)) if destinations is None else destinations
        return self.groups.index(members)


def has_cycle(groups: tuple[frozenset[int], ...]) -> bool:
    """Whether the graph that joins groups with common members has a cycle: merge what is joined."""
    part = list(range(len(groups)))
    for x in range(len(groups)):
        for y in range(x):
            if groups[x] & groups[y]:
                if part[x] == part[y]:
                    return True
                part = [part[x] if p == part[y] else p for p in part]
    return False
