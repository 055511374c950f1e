"""The encoding of the cluster management's messages: control information in 4-byte words.

A message is its fields in order, each as its type says. A number or a process is one word, and the
largest word stands for no process; a tuple is its length and then its items, a named tuple its fields.
"""

import struct
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, get_args, get_origin

from typing_extensions import override

from ...wire import WORD, Message, WireError

NOBODY = 2**32 - 1
ProcessId = Annotated[int, "a process of the run"]
ProcessOrNone = Annotated[int | None, "a process of the run"]


def put(kind: Any, value: Any) -> Iterator[int]:
    """The words that stand for a value of a type."""
    if get_origin(kind) is tuple:
        yield len(value)
        for item in value:
            yield from put(get_args(kind)[0], item)
    elif isinstance(value, tuple):
        for part, field in zip(kind.__annotations__.values(), value, strict=True):
            yield from put(part, field)
    else:
        yield NOBODY if value is None else value


def length(value: Any) -> int:
    """The number of words that stand for a value, without looking at its type's description."""
    if not isinstance(value, tuple):
        return 1
    return sum(map(length, value)) + (type(value) is tuple)


def take(kind: Any, words: Iterator[int], processes: int) -> Any:
    """The value of a type that the next words stand for; WireError if there is none."""
    if hasattr(kind, "_fields"):
        return kind(*(take(part, words, processes) for part in kind.__annotations__.values()))
    word = next(words, None)
    if word is None:
        raise WireError("control information that ends too early")
    if get_origin(kind) is tuple:
        return tuple(take(get_args(kind)[0], words, processes) for _ in range(word))
    if kind == ProcessOrNone and word == NOBODY:
        return None
    if kind is not int and word >= processes:
        raise WireError(f"process {word} is not one of {processes}")
    return word


class WordMessage(Message):
    """A message whose control information is its own fields, by their types."""

    __slots__ = ()
    types: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls.types = cls.__annotations__

    def _words(self) -> list[int]:
        return [w for name, kind in self.types.items() for w in put(kind, getattr(self, name))]

    @property
    @override
    def control_size(self) -> int:
        return WORD * sum(length(getattr(self, name)) for name in self.types)

    @override
    def encode_control(self) -> bytes:
        words = self._words()
        return struct.pack(f"!{len(words)}I", *words)

    @classmethod
    @override
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        if len(control) % WORD:
            raise WireError(f"{len(control)} bytes of control information are not whole words")
        words = iter(struct.unpack(f"!{len(control) // WORD}I", control))
        fields = {name: take(kind, words, processes) for name, kind in cls.types.items()}
        if next(words, None) is not None:
            raise WireError("more control information than belongs to the message")
        return fields
