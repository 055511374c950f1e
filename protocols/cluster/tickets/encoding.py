"""The encoding of the cluster management's messages: control information in 4-byte words.

A message is its fields in order, each in the form that follows from its type. A number or a process is
one word, and the largest word stands for no process; a tuple is its length and then its items.
"""

import struct
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple, get_args, get_origin

from typing_extensions import override

from ...wire import WORD, Message, WireError

NOBODY = 2**32 - 1
Words = Iterator[int]


class Form:
    """One unsigned number."""

    def put(self, value: Any) -> list[int]:
        """The words that stand for a value."""
        return [value]

    def take(self, words: Words, processes: int) -> Any:
        """The value that the next words stand for; WireError if there is none."""
        word = next(words, None)
        if word is None:
            raise WireError("control information that ends too early")
        return word


class Process(Form):
    """A process of the run."""

    @override
    def take(self, words: Words, processes: int) -> Any:
        process = super().take(words, processes)
        if process >= processes:
            raise WireError(f"process {process} is not one of {processes}")
        return process


class Maybe(Form):
    """A process of the run, or none."""

    @override
    def put(self, value: Any) -> list[int]:
        return [NOBODY if value is None else value]

    @override
    def take(self, words: Words, processes: int) -> Any:
        word = super().take(words, processes)
        return None if word == NOBODY else PROCESS.take(iter([word]), processes)


class Many(Form):
    """A tuple of values of one form."""

    def __init__(self, item: Form) -> None:
        self.item = item

    @override
    def put(self, value: Any) -> list[int]:
        return [len(value), *(word for item in value for word in self.item.put(item))]

    @override
    def take(self, words: Words, processes: int) -> Any:
        count = super().take(words, processes)
        return tuple(self.item.take(words, processes) for _ in range(count))


class Record(Form):
    """A named tuple whose fields have these forms."""

    def __init__(self, kind: type[NamedTuple], *forms: Form) -> None:
        self.kind = kind
        self.forms = forms

    @override
    def put(self, value: Any) -> list[int]:
        return [w for form, field in zip(self.forms, value, strict=True) for w in form.put(field)]

    @override
    def take(self, words: Words, processes: int) -> Any:
        return self.kind(*(form.take(words, processes) for form in self.forms))


NUMBER, PROCESS, MAYBE = Form(), Process(), Maybe()
ProcessId = Annotated[int, PROCESS]
ProcessOrNone = Annotated[int | None, MAYBE]


def form_of(kind: Any) -> Form:
    """The form of a type: of a number, as the type itself says, of a tuple, or of a named tuple."""
    if kind is int:
        return NUMBER
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        form: Form = arguments[1]
        return form
    if origin is tuple:
        return Many(form_of(arguments[0]))
    return Record(kind, *map(form_of, kind.__annotations__.values()))


class WordMessage(Message):
    """A message whose control information is its own fields, each in its form."""

    __slots__ = ()
    forms: ClassVar[dict[str, Form]] = {}

    def __init_subclass__(cls) -> None:
        cls.forms = {name: form_of(kind) for name, kind in cls.__annotations__.items()}

    def _words(self) -> list[int]:
        return [w for name, form in self.forms.items() for w in form.put(getattr(self, name))]

    @property
    @override
    def control_size(self) -> int:
        return WORD * len(self._words())

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
        fields = {name: form.take(words, processes) for name, form in cls.forms.items()}
        if next(words, None) is not None:
            raise WireError("more control information than belongs to the message")
        return fields
