"""Whether messages arrive as they were sent, where no engine encodes them: what is not in their bytes
would be control information that costs nothing.
"""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from testbed.errors import ProtocolError
from testbed.protocols import Message, Protocol
from testbed.protocols.channel import Reliable
from testbed.protocols.channel.segments import Segment


class EncodingCheck:
    """Encodes and decodes the messages of one protocol, and refuses those that change by it."""

    def __init__(self, process: Protocol) -> None:
        if isinstance(process, Reliable):
            process = process.inner
        self._protocol = process
        self._codec = process.codec(0, process.place.processes)
        self._met: dict[type[Message], int] = {}

    def sample(self, message: Message) -> None:
        """Check the first, second, fourth, eighth message of each class, and so on."""
        if isinstance(message, Segment):
            if message.message is None:
                return
            message = message.message
        if not isinstance(message, Message):
            return  # what it is will be told when it is to be cut into packets
        kind = type(message)
        count = self._met[kind] = self._met.get(kind, 0) + 1
        if count & (count - 1) == 0:
            self.check(message)

    def check(self, message: Message) -> None:
        """Raise a ProtocolError that says what to write."""
        if flaw := self._flaw(message):
            raise ProtocolError(
                f"{self._protocol.name}: {type(message).__name__} does not arrive as it was sent: "
                f"{flaw}. Hosts exchange bytes: the header, what encode_control() returns, and the "
                "payload; protocols/timestamp.py shows how to write control_size, encode_control "
                "and decode_control"
            )

    def _flaw(self, message: Message) -> str | None:
        if (kind := type(message)) not in self._protocol.messages:
            return (
                "its class is not named in the protocol's messages; decorate it with @of_kind(1) and "
                f"write messages = ({kind.__name__},)"
            )
        try:
            data = self._codec.encode(message)
        except Exception as error:  # whatever a protocol under test raises
            return f"it cannot be encoded ({type(error).__name__}: {error})"
        if (size := len(data)) != message.size:
            said, made = message.control_size, message.control_size + size - message.size
            return f"control_size is {said}, but encode_control() returns {made} bytes"
        try:
            arrived = self._codec.decode(data)
        except Exception as error:
            return f"it cannot be decoded ({type(error).__name__}: {error})"
        if type(arrived) is not kind:
            return (
                f"it arrives as {type(arrived).__name__}, which has the same kind; @of_kind gives each "
                "class a kind of its own"
            )
        lost = [name for name in _names(message) if not _same(message, arrived, name)]
        return f"{' and '.join(lost)} is not what was sent" if lost else None


def _names(value: Any) -> list[str]:
    """The attributes that make up a value, without what it keeps for itself."""
    names = _fields(type(value))  # type: ignore[arg-type]  # a class is hashable
    more = [name for name in getattr(value, "__dict__", ()) if name not in names]
    return [*names, *(name for name in more if not name.startswith("_"))]


@cache
def _fields(kind: type) -> list[str]:
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    return [name for name in names if not name.startswith("_")]


def _same(one: Any, other: Any, name: str) -> bool:
    missing = object()
    return _equal(getattr(one, name, missing), getattr(other, name, missing))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(_same(one, other, name) for name in _names(one))
    return bool(one == other)
