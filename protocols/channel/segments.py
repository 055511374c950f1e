"""The segments of the reliable channel: a header of its own before a message's control information.

All integers are unsigned and big-endian; the length in words is in byte 5 of the common header.

    bits   field
       1   start      the receiver's stream begins with this number, whatever came before
       7   stream     of the number; of the acknowledgement, if there is no number
      12   incarnation of the sender
      12   incarnation of the receiver, as the sender knows it; zero in a multicast copy
      32   number     of the message in the stream; absent in a mere acknowledgement
      32   ack        all up to this number have arrived; absent in a multicast copy
    32 k   beyond     bit i of this integer: number ack + 2 + i has arrived too; in as few words as
                      possible

A message is numbered in stream 0, which is for one receiver, or in a multicast stream. What is sent to
one receiver alone also acknowledges stream 0 of the other direction. An acknowledgement that travels
alone is a message of kind 255 without a name.
"""

import struct
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from typing_extensions import override

from ..wire import HEADER, WORD, Codec, Message, MessageId, WireError

ACK_KIND = 255
STREAMS = 1 << 7
INCARNATIONS = 1 << 12
_WORD = struct.Struct("!I")


class ChannelHeader(NamedTuple):
    """The channel's header; ``number`` and ``ack`` are None where they are absent."""

    incarnation: int
    receiver: int = 0
    stream: int = 0
    start: bool = False
    number: int | None = None
    ack: int | None = None
    beyond: int = 0

    @property
    def words(self) -> int:
        """Its length in words."""
        fields = 1 + (self.number is not None) + (self.ack is not None)
        return fields + -(-self.beyond.bit_length() // 32)

    def encode(self) -> bytes:
        """The header's bytes."""
        ends = self.incarnation << 12 | self.receiver
        words = [self.start << 31 | self.stream << 24 | ends]
        words += [word for word in (self.number, self.ack) if word is not None]
        beyond = self.beyond.to_bytes(WORD * (self.words - len(words)), "big")
        return b"".join(map(_WORD.pack, words)) + beyond

    @classmethod
    def decode(cls, data: bytes, numbered: bool) -> Self:
        """The header that these bytes encode, with a number or without."""
        if len(data) < 2 * WORD:
            raise WireError(f"{len(data)} bytes are too few for a channel's header")
        (first,) = _WORD.unpack_from(data)
        words = [word for (word,) in _WORD.iter_unpack(data[WORD : 3 * WORD])]
        number = words.pop(0) if numbered else None
        ack = words.pop(0) if words else None
        at = WORD * (1 + numbered + (ack is not None))
        header = cls(
            incarnation=first >> 12 & INCARNATIONS - 1,
            receiver=first & INCARNATIONS - 1,
            stream=first >> 24 & STREAMS - 1,
            start=bool(first >> 31),
            number=number,
            ack=ack,
            beyond=int.from_bytes(data[at:], "big"),
        )
        header._validate(len(data))
        return header

    def _validate(self, size: int) -> None:
        if WORD * self.words != size:
            raise WireError(f"a channel's header of {self.words} words in {size} bytes")
        if self.ack is None and (self.stream == 0 or self.receiver or self.start):
            raise WireError("a copy for many that is for one receiver")
        if self.start and (self.stream == 0 or self.number is None):
            raise WireError("a start where no stream begins")


@dataclass(frozen=True, slots=True, eq=False)
class Segment(Message):
    """A message with the channel's header, or an acknowledgement without a message."""

    channel: ChannelHeader = field(kw_only=True)
    message: Message | None = field(kw_only=True, default=None)

    @classmethod
    def of(cls, message: Message, channel: ChannelHeader) -> Self:
        """A segment that carries a message."""
        return cls(
            message.source,
            message.seq,
            message.payload,
            message.sent_at,
            message.group,
            channel=channel,
            message=message,
        )

    @property
    def kind(self) -> int:  # type: ignore[override]
        """The kind of the message inside."""
        return ACK_KIND if self.message is None else self.message.kind

    @property
    @override
    def control_size(self) -> int:
        own = 0 if self.message is None else self.message.control_size
        return WORD * self.channel.words + own

    @property
    def channel_size(self) -> int:
        """The channel's header; of an acknowledgement, everything."""
        return self.size if self.message is None else WORD * self.channel.words

    @property
    @override
    def carried(self) -> tuple[MessageId, ...]:
        return () if self.message is None else self.message.carried

    @property
    @override
    def channel_words(self) -> int:
        return self.channel.words

    @override
    def encode_control(self) -> bytes:
        own = b"" if self.message is None else self.message.encode_control()
        return self.channel.encode() + own


class SegmentCodec(Codec):
    """Encodes and decodes a protocol's messages as segments."""

    @override
    def decode(self, data: bytes) -> Segment:
        header = self._checked_header(data)
        is_ack = header.kind == ACK_KIND
        end = HEADER.size + WORD * header.channel_words
        channel = ChannelHeader.decode(data[HEADER.size : end], numbered=not is_ack)
        if not is_ack:
            return Segment.of(self._message(header, data), channel)
        if len(data) != end or header.seq or header.sent_at or header.group:
            raise WireError("an acknowledgement that carries something")
        return Segment(header.source, 0, channel=channel)
