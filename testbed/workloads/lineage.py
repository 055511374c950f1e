"""Answers that are the same for every protocol, in whatever order it delivers.

A message that may be answered begins with its *lineage*: how many answers deep it is, and a number that
follows from the message that was sent unasked and from who has answered since. Who answers, and whom,
is drawn from that and from the sender. A message's own number would not do: which of two answers a
process sends first depends on the protocol.
"""

import struct
from typing import NamedTuple, Self
from zlib import crc32

LINEAGE_BYTES = 4
DRAWN_BITS = 12  # of the 32; the rest is the depth
MOST_ANSWERS = 1_000_000  # direct and indirect, to one message
DEEPEST_TREE = 20  # two answers to each message make more than that


class Lineage(NamedTuple):
    """Where a message comes from."""

    depth: int
    drawn: int

    @classmethod
    def unasked(cls, at: int, node: int) -> Self:
        """Of a message that a node sends on its own initiative at this time."""
        return cls(0, _draw(at, node) % (1 << DRAWN_BITS))

    @classmethod
    def of(cls, payload: bytes) -> Self:
        """What a payload begins with."""
        return cls(*divmod(int.from_bytes(payload[:LINEAGE_BYTES], "big"), 1 << DRAWN_BITS))

    def answer(self, node: int) -> Self:
        """Of the answer of a node to such a message."""
        return self._replace(depth=self.depth + 1, drawn=self.draw(node) % (1 << DRAWN_BITS))

    def draw(self, node: int) -> int:
        """A number drawn for what a node does with such a message."""
        return _draw(self.depth, self.drawn, node)

    def payload(self, size: int, more: bytes = b"") -> bytes:
        """A payload of that size that begins with this, and what else is given."""
        head = (self.depth << DRAWN_BITS | self.drawn).to_bytes(LINEAGE_BYTES, "big") + more
        return head + bytes(size - len(head))


def tree_of_answers(answers: int, depth: int) -> int:
    """How many answers, direct and indirect, one message brings about; too many are refused."""
    if answers < 2:
        count = depth * answers
    else:
        count = sum(answers**level for level in range(1, min(depth, DEEPEST_TREE) + 1))
    if count > MOST_ANSWERS or (answers > 1 and depth > DEEPEST_TREE):
        raise ValueError(
            f"answers = {answers} and depth = {depth} make more than a million "
            "answers to each message"
        )
    return count


def _draw(*numbers: int) -> int:
    return crc32(struct.pack(f"!{len(numbers)}q", *numbers))
