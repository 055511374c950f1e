"""Whether a protocol keeps state where all its processes share it: in a class, or in a module.

On one engine the processes of a run live in one Python process, on others each has its own. State that
they share would be a channel between them that no network has.
"""

import pickle
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from testbed.errors import ProtocolError
from testbed.protocols import Protocol

_CONSTANTS = (int, str, type(None))
_DEFINITIONS = (
    type,
    FunctionType,
    BuiltinFunctionType,
    ModuleType,
    classmethod,
    staticmethod,
    property,
)


class SharedState:
    """What classes and modules of a protocol hold, as it was when this was made."""

    def __init__(self, protocol: type[Protocol]) -> None:
        self._protocol = protocol
        self._before = dict(_values(protocol))

    def check(self) -> None:
        """Raise a ProtocolError if any of it has changed."""
        for name, value in _values(self._protocol):
            if self._before.get(name) != value:
                raise ProtocolError(
                    f"{self._protocol.name}: {name} has changed while processes ran; processes of a "
                    "real system share nothing: keep it in self, where __init__ makes it"
                )


def _values(protocol: type[Protocol]) -> Iterator[tuple[str, Any]]:
    """Whatever stays as it is unless it is replaced, or can be written down, by its name."""
    classes = [kind for kind in protocol.__mro__ if kind.__module__ != "builtins"]
    for kind in classes:
        yield from _written(kind.__qualname__, vars(kind))
    for module in dict.fromkeys(kind.__module__ for kind in classes):
        if module in sys.modules:
            yield from _written(module, vars(sys.modules[module]))


def _written(where: str, names: Any) -> Iterator[tuple[str, Any]]:
    for name, value in list(names.items()):
        if name.startswith("__"):
            continue
        if type(value) in _CONSTANTS or isinstance(value, _DEFINITIONS):
            yield f"{where}.{name}", value
        else:
            try:
                yield f"{where}.{name}", pickle.dumps(value)
            except Exception:  # a lock, a module: not what a protocol remembers
                continue
