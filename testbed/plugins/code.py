"""By what the code of a protocol is known again: a hash of its module and of those that it uses."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from testbed.compiled import MODULES
from testbed.compiled import source as source_file
from testbed.plugins.source import SOURCE, Source
from testbed.protocols import Protocol

_OURS = Protocol.__module__.rpartition(".")[0]  # the package of the testbed's protocols


@cache
def code_hash(protocol: type[Protocol]) -> str:
    """A hash of all code that makes up a protocol: its file, and the modules that it imports.

    Of these it takes those of its own package and of the testbed's protocols.
    """
    modules = sorted(_closure(protocol.__module__))
    texts = (f"{name}\0{_text(sys.modules[name])}\0" for name in modules)
    return sha256("".join(texts).encode()).hexdigest()


def _closure(start: str) -> set[str]:
    package = _OURS if start.startswith(f"{_OURS}.") else start.partition(".")[0]
    found, todo = set[str](), [start]
    while todo:
        name = todo.pop()
        ours = name == start or name.startswith((f"{package}.", f"{_OURS}."))
        if ours and name in sys.modules and name not in found:
            found.add(name)
            todo += _imported(sys.modules[name])
    return found


def _imported(module: ModuleType) -> Iterator[str]:
    """The modules that a module imports; what a package only passes on is where it is defined."""
    for node in ast.walk(ast.parse(_text(module))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = (module.__package__ or "").split(".")
            start = package[: len(package) - node.level + 1] if node.level else []
            home = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                yield from _homes(home, alias.name)


def _homes(home: str, name: str) -> Iterator[str]:
    yield f"{home}.{name}"  # if it is a module
    yield home
    value = getattr(sys.modules.get(home), name, None)
    if isinstance(defined := getattr(value, "__module__", None), str):
        yield defined


def _text(module: ModuleType) -> str:
    if isinstance(source := getattr(module, SOURCE, None), Source):
        return source.text
    compiled = module.__name__ in MODULES
    file = str(source_file(module.__name__)) if compiled else module.__file__
    return Path(file).read_text(encoding="utf-8") if file and file.endswith(".py") else ""
