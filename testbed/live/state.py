"""The state of a process as text, one line for each part of it, and what has changed in it."""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from testbed.protocols import Message, Place

LONGEST = 120  # characters of a value
DEEPEST = 5  # objects within objects
MOST = 24  # items of a list
_PLAIN = {int, str, bytes, bool, float, type(None)}
UNSEEN = ("place", "settings", "me")  # of a protocol: what never changes

State = dict[str, str]
Change = tuple[str, str | None, str | None]  # the part, what it was, what it is


def state_of(protocol: Any) -> State:
    """The parts of a protocol's state by their names, such as ``local.view``; each object once."""
    return dict(_parts("", protocol, 0, set()))


def changes(before: State, after: State) -> list[Change]:
    """What differs; None is for a part that was not there, or is there no longer."""
    names = dict.fromkeys((*before, *after))
    return [(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)]


def text(value: Any) -> str:
    """A value in few words: messages by name, everything else as Python writes it."""
    whole = _text(value, ())
    return whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 1]}…"


def _parts(name: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, str]]:
    inner = _inside(value) if depth < DEEPEST else None
    if inner is None:
        yield name, text(value)
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    for key, part in inner.items():
        if not isinstance(part, Random | Place) and not callable(part):
            yield from _parts(f"{name}{key}" if name else key.lstrip("."), part, depth + 1, seen)


def _inside(value: Any) -> dict[str, Any] | None:
    """Of an object that is made of parts, or holds some that are, these; None of a plain value."""
    if _has_parts(type(value)):
        state = value.__getstate__()
        own, slots = state if isinstance(state, tuple) else (state, None)
        parts = {**(own or {}), **(slots or {})}
        return {f".{key}": part for key, part in parts.items() if key not in UNSEEN} or None
    if isinstance(value, dict) and any(_has_parts(type(item)) for item in value.values()):
        return {f"[{_text(key, ())}]": item for key, item in islice(value.items(), MOST)}
    if isinstance(value, list | tuple) and any(_has_parts(type(item)) for item in value):
        return {f"[{number}]": item for number, item in enumerate(value[:MOST])}
    return None


def _has_parts(kind: type) -> bool:
    if kind.__module__ in ("builtins", "collections"):
        return False
    return not issubclass(kind, (Message, tuple, Random, Place, Enum, np.ndarray))


def _text(value: Any, above: tuple[int, ...]) -> str:
    if type(value) in _PLAIN:
        return repr(value)
    if isinstance(value, Message):
        return str(value.id)
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if id(value) in above:
        return "…"
    above = (*above, id(value))
    match value:
        case dict():
            items = (
                f"{_text(k, above)}: {_text(v, above)}" for k, v in islice(value.items(), MOST)
            )
            return "{" + _joined(items, len(value)) + "}"
        case set() | frozenset():
            return "{" + _joined(sorted(_text(item, above) for item in value), 0) + "}"
        case list() | deque():
            return (
                "["
                + _joined((_text(item, above) for item in islice(value, MOST)), len(value))
                + "]"
            )
        case tuple():
            return "(" + _joined((_text(item, above) for item in value[:MOST]), len(value)) + ")"
    shown = repr(value)
    return shown if " object at 0x" not in shown else type(value).__name__


def _joined(items: Iterable[str], count: int) -> str:
    return ", ".join(items) + (", …" if count > MOST else "")
