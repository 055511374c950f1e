"""What a protocol may import in a lab, and the sentence about what it may not.

This is for good words and an even field; it protects from nothing, the wall does.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

# All of these are loaded before a cell is sealed, for afterwards no file can be opened.
STANDARD = (
    *("__future__", "abc", "array", "base64", "binascii", "bisect", "builtins", "cmath"),
    *("collections", "collections.abc", "contextlib", "copy", "dataclasses", "decimal", "enum"),
    *("fractions", "functools", "hashlib", "heapq", "itertools", "json", "logging", "math"),
    *("numbers", "operator", "pprint", "random", "re", "statistics", "string", "struct", "sys"),
    *("textwrap", "time", "types", "typing", "typing_extensions", "warnings", "weakref", "zlib"),
)
NUMPY = "numpy"
BASE = ("testbed.protocols", "testbed.protocols.base", "testbed.protocols.wire")
MAY = (
    "a protocol of a lab may import testbed.protocols (what every protocol is made of, not those that "
    "come with the testbed), numpy, and of the standard library what computes: collections, "
    "dataclasses, heapq, struct and the like"
)


def refused(tree: ast.Module, _: Path) -> Iterator[tuple[int, str]]:
    """The imports that are not allowed, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
            if names == ["testbed"]:
                names = [f"testbed.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if not (name in STANDARD or name in BASE or name.partition(".")[0] == NUMPY):
                yield node.lineno, f"it imports {name!r}; {MAY}"
