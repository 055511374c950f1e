"""From a document with lists of values to points: every combination of them, each an experiment.

Where one value is wanted, a list is a dimension; where the key itself takes a list, a list of lists
is one; an array of tables such as [[topology]] gives alternatives, values that go together, but for
[[fault]], all of which happen. Which it is, is decided by the type of the key.
"""

import dataclasses
from collections.abc import Mapping
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, get_type_hints

from testbed.errors import UserError
from testbed.experiment.document import Experiment, fits, key_types, naming_key, parse


def expand(document: Mapping[str, Any], file: Path) -> list[Experiment]:
    """Every combination of what a document lists, each as an experiment."""
    axes = [[(key, v) for v in _variants(key, value, file)] for key, value in document.items()]
    return [point for choice in product(*axes) for point in parse(dict(choice), file)]


def _variants(key: str, value: Any, file: Path) -> list[Any]:
    """What a key of the file itself, or a table, is to be in turn."""
    kind = key_types("", {}).get(key)
    if key == "fault" and fits(kind, value):  # tables that are all there
        return [list(choice) for choice in product(*(_tables(key, t, file) for t in value))]
    listed = value if key == "protocol" and isinstance(value, list) else None
    values = listed or _values(kind, value, key, file)
    return [t for v in values for t in (_tables(key, v, file) if isinstance(v, dict) else [v])]


def _tables(name: str, content: dict[str, Any], file: Path) -> list[dict[str, Any]]:
    """Every combination of what a table lists; the model first, since it brings the keys."""
    key = naming_key(name)
    if isinstance(models := content.get(key), list) and models:
        return [t for model in models for t in _tables(name, {**content, key: model}, file)]
    return _combinations(content, key_types(name, content, file), name, file)


def _combinations(
    content: dict[str, Any], types: Mapping[str, Any], where: str, file: Path
) -> list[dict[str, Any]]:
    axes = [
        [(key, v) for v in _values(types.get(key), value, f"{where}.{key}", file)]
        for key, value in content.items()
    ]
    return [dict(choice) for choice in product(*axes)]


def _values(kind: Any, value: Any, where: str, file: Path) -> list[Any]:
    """What a key is to be in turn: a value that fits is one value, any other list is many."""
    if kind is None or fits(kind, value):
        return [value]
    if isinstance(value, list):
        if not value:
            raise UserError(f"{file}: {where} = []: give at least one value to sweep over")
        return value
    if isinstance(value, dict) and dataclasses.is_dataclass(kind):
        return _combinations(value, get_type_hints(kind), where, file)
    return [value]


def flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with keys such as ``topology.nodes`` and ``fault.2.rate``."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            flat |= flatten({str(n): v for n, v in enumerate(value, 1)}, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def identity(*texts: str) -> str:
    """A short hash that names what it is made of."""
    return sha256("\n".join(texts).encode()).hexdigest()[:12]
