"""A message that travels by way of a member, because the link between two others may be bad.

Passed    from whom, to whom, kind and, as the highest bit, whether its sender does not hear the
          receiver directly, source, sequence number, time of sending (2), length of the control
          information, that, payload
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from ..base import Count, Effects, Send
from ..wire import Message, MessageId, WireError
from .detector import POOR
from .flush import Fetch, Flush, Missing, Part
from .laden_cast import LadenCast
from .messages import Cast, Expelled, Join, Leave, Report, Silence
from .stamped_cast import StampedCast

if TYPE_CHECKING:
    from .group import Group

HEAD = struct.Struct("!5IQI")
UNHEARD = 1 << 31
KINDS: tuple[type[Message], ...] = (
    *(Cast, StampedCast, LadenCast, Report, Join, Leave, Expelled, Silence),
    *(Flush, Part, Missing, Fetch),
)
BY_NUMBER: dict[int, type[Message]] = {kind.kind: kind for kind in KINDS}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Passed(Message):
    """A message from one member to another that travels by way of a third.

    If its sender does not hear the receiver directly (``unheard``), the receiver answers in the same
    way. Else it does not: they would go on for ever after a link is good again.
    """

    sender: int
    to: int
    inner: Message
    unheard: bool = False

    kind: ClassVar[int] = 11

    @property
    @override
    def carried(self) -> tuple[MessageId, ...]:
        return (self.inner.id, *self.inner.carried)

    @property
    @override
    def control_size(self) -> int:
        return HEAD.size + self.inner.control_size + len(self.inner.payload)

    @override
    def encode_control(self) -> bytes:
        inner, control = self.inner, self.inner.encode_control()
        kind = inner.kind | (UNHEARD if self.unheard else 0)
        names = kind, inner.source, inner.seq, inner.sent_at
        head = HEAD.pack(self.sender, self.to, *names, len(control))
        return head + control + inner.payload

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        if len(control) < HEAD.size:
            raise WireError(f"{len(control)} bytes are no message that was passed on")
        sender, to, number, source, seq, sent_at, size = HEAD.unpack_from(control)
        kind = BY_NUMBER.get(number & ~UNHEARD)
        if kind is None or max(sender, to, source) >= processes:
            raise WireError(f"unknown kind {number}, or a process that there is not")
        rest = control[HEAD.size :]
        if len(rest) < size:
            raise WireError(f"{size} bytes of control information announced, cut short")
        fields = kind.decode_control(rest[:size], processes)
        return {
            "sender": sender,
            "to": to,
            "inner": kind(source, seq, rest[size:], sent_at, **fields),
            "unheard": bool(number & UNHEARD),
        }


def passed(group: Group, sender: int, to: int, inner: Message, unheard: bool = False) -> Passed:
    """A message of a member to another, to be sent by way of somebody; both are of one group."""
    me, inner = group.me.process, replace(inner, group=0)
    return Passed(me, 0, group=group.number, sender=sender, to=to, inner=inner, unheard=unheard)


def bypassing(group: Group, effects: Effects, now: int) -> Effects:
    """The same effects; what is sent over a bad link is sent by way of another member as well."""
    for effect in effects:
        yield effect
        if not isinstance(effect, Send) or isinstance(effect.message, Passed):
            continue
        if group.view is None or group.seeking:
            continue
        unanswered = _unanswered(group, now)
        for peer in effect.peers:
            detour = group.detector.detour(peer, now, unanswered)
            if detour is not None:
                me, message = group.me.process, effect.message
                yield Send((detour.by_way_of,), passed(group, me, peer, message, detour.unheard))
                yield Count("detours")


def _unanswered(group: Group, now: int) -> tuple[int, ...]:
    """Who should have answered a proposal by now."""
    proposal = group.change.proposal
    if proposal is None or now - proposal.since < POOR * group.timing.heartbeat:
        return ()
    return proposal.waiting()
