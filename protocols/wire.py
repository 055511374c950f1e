"""The wire format: a message is a 32-byte header, then control information, then the payload.

The header is the same for all protocols, so that a packet in a capture can be attributed without
knowing its protocol. All integers are unsigned and big-endian:

    offset  size  field
         0     2  magic "co"
         2     1  version of this format
         3     1  protocol (its ``wire_id``)
         4     1  kind of message within the protocol
         5     1  length of the reliable channel's header in 4-byte words, zero without a channel
         6     2  group
         8     4  run
        12     2  source     process that multicast the message
        14     2  check      CRC-16 of the whole message with this field zero
        16     4  sequence   number of the source's multicast; with the source, the message's name
        20     8  sent at    nanoseconds of the run's clock at which the application sent it
        28     4  length of the control information in bytes

The control information begins with the channel's header (see ``channel.segments``), if any.
"""

import struct
from binascii import crc_hqx
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

MAGIC = b"co"
VERSION = 1
HEADER = struct.Struct("!2sBBBBHIHHIQI")
CHECK = struct.Struct("!H")
CHECK_AT = 14
WORD = 4


class WireError(ValueError):
    """Bytes that are not a message of this run: a peer erred, or a stranger sent them."""


class MessageId(NamedTuple):
    """A message's name: the process that multicast it, and its sequence number there."""

    source: int
    seq: int

    def __str__(self) -> str:
        return f"m({self.source},{self.seq})"


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A message between processes. Protocols with control information derive from it."""

    source: int
    seq: int
    payload: bytes = b""
    sent_at: int = 0
    group: int = 0

    kind: ClassVar[int] = 0

    @property
    def id(self) -> MessageId:
        """The message's name."""
        return MessageId(self.source, self.seq)

    @property
    def control_size(self) -> int:
        """Bytes of control information beyond the header."""
        return 0

    @property
    def size(self) -> int:
        """Bytes of the encoded message: what is accounted for is what is sent."""
        return HEADER.size + self.control_size + len(self.payload)

    @property
    def carried(self) -> tuple[MessageId, ...]:
        """The names of the messages that travel in this one, whole, besides its own."""
        return ()

    @property
    def channel_size(self) -> int:
        """Bytes that a reliable channel has added; they are control information too."""
        return 0

    @property
    def channel_words(self) -> int:
        """Length in words of the channel's header, with which the control information begins."""
        return 0

    def encode_control(self) -> bytes:
        """The control information as it travels."""
        return b""

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        """The constructor's further arguments, read from the control information."""
        if control:
            raise WireError(f"{len(control)} bytes of control information where none belong")
        return {}


M = TypeVar("M", bound=Message)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def of_kind(kind: int) -> Callable[[type[M]], type[M]]:
    """Make a class a kind of message within its protocol; its own fields are keywords."""

    def decorate(message: type[M]) -> type[M]:
        made = dataclass(frozen=True, slots=True, eq=False, kw_only=True)(message)
        made.kind = kind
        return made

    return decorate


class Header(NamedTuple):
    """The header's fields, by which a packet is attributed without decoding the rest."""

    protocol: int
    kind: int
    channel_words: int
    group: int
    run: int
    source: int
    check: int
    seq: int
    sent_at: int
    control_size: int


def decode_header(data: bytes) -> Header:
    """Read the header; WireError says why these bytes are not one of our messages."""
    if len(data) < HEADER.size:
        raise WireError(f"{len(data)} bytes are too few for a header of {HEADER.size}")
    magic, version, *fields = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise WireError(f"magic {magic!r} is not {MAGIC!r}")
    if version != VERSION:
        raise WireError(f"wire format version {version}, this is version {VERSION}")
    header = Header(*fields)
    if header.control_size > len(data) - HEADER.size:
        raise WireError(f"{header.control_size} bytes of control information announced, cut short")
    if WORD * header.channel_words > header.control_size:
        raise WireError(f"{header.channel_words} words of a channel's header, which do not fit")
    return header


class Codec:
    """Encodes and decodes the messages of one protocol in one run."""

    def __init__(
        self, wire_id: int, messages: tuple[type[Message], ...], run: int, processes: int
    ) -> None:
        self.wire_id = wire_id
        self.run = run
        self.processes = processes
        self._kinds = {message.kind: message for message in messages}

    def encode(self, message: Message) -> bytes:
        """The message's bytes; every message has exactly one encoding."""
        control = message.encode_control()
        data = bytearray(HEADER.size) + control + message.payload
        HEADER.pack_into(
            data,
            0,
            MAGIC,
            VERSION,
            self.wire_id,
            message.kind,
            message.channel_words,
            message.group,
            self.run,
            message.source,
            0,
            message.seq,
            message.sent_at,
            len(control),
        )
        CHECK.pack_into(data, CHECK_AT, crc_hqx(data, 0))
        return bytes(data)

    def decode(self, data: bytes) -> Message:
        """The message that these bytes encode; WireError if it is not one of this run."""
        header = self._checked_header(data)
        if header.channel_words:
            raise WireError("a segment of a reliable channel, and this run has none")
        return self._message(header, data)

    def _checked_header(self, data: bytes) -> Header:
        header = decode_header(data)
        if header.protocol != self.wire_id or header.run != self.run:
            raise WireError(f"a message of protocol {header.protocol} in run {header.run:#010x}")
        if header.source >= self.processes:
            raise WireError(f"source {header.source} is not one of {self.processes} processes")
        zeroed = data[:CHECK_AT] + bytes(CHECK.size) + data[CHECK_AT + CHECK.size :]
        if crc_hqx(zeroed, 0) != header.check:
            raise WireError("the check does not match: damaged on the way")
        return header

    def _message(self, header: Header, data: bytes) -> Message:
        kind = self._kinds.get(header.kind)
        if kind is None:
            raise WireError(f"unknown kind {header.kind}")
        start = HEADER.size + WORD * header.channel_words
        end = HEADER.size + header.control_size
        return kind(
            source=header.source,
            seq=header.seq,
            payload=data[end:],
            sent_at=header.sent_at,
            group=header.group,
            **kind.decode_control(data[start:end], self.processes),
        )
