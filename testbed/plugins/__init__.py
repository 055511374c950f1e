"""Protocols by name: of the testbed, of installed packages, or in a file of your own.

    timestamp        a protocol of the testbed, or one of its broken ones
    lamport          one that an installed package offers, as an entry point of the group ``GROUP``
    ./mine.py:Mine   a class in a file; the class may be left out if the file has only one protocol

``source`` reads such files, ``code`` knows by which hash the code of a protocol is known again.
"""

import difflib
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from testbed.errors import UserError
from testbed.plugins.source import Source, checked, is_file, source_of
from testbed.protocols import PROTOCOLS, Protocol
from testbed.protocols.broken import BROKEN, BROKEN_CLUSTERS

GROUP = "causal_testbed.protocols"
_loaded: dict[type[Protocol], None] = {}
_stand_ins: dict[str, type[Protocol]] = {}
BUILT_IN: Mapping[str, type[Protocol]] = ChainMap(PROTOCOLS, BROKEN, BROKEN_CLUSTERS)


def find_protocol(name: str, base: Path = Path()) -> type[Protocol]:
    """The protocol of that name; a file is looked for from ``base``."""
    if found := look_up(name, base):
        return found
    known = [*BUILT_IN, *installed()]
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    raise UserError(
        f"protocol {name}: there is no such protocol; {hint} (one of your own is named by its "
        "file: ./mine.py:Mine)"
    )


def look_up(name: str, base: Path = Path()) -> type[Protocol] | None:
    """The protocol of that name, or None if nobody knows the name."""
    if found := BUILT_IN.get(name) or _stand_ins.get(name):
        return found
    found = None
    if is_file(name):
        found = Source.read(name, base).load(BUILT_IN)
    elif entry := installed().get(name):
        found = _load(entry)
    if found is not None:
        _loaded[found] = None
    return found


@contextmanager
def stand_in(protocol: type[Protocol], *names: str) -> Iterator[None]:
    """Have a class found by its name and others, which stands for a protocol that is elsewhere."""
    before = dict(_stand_ins)
    _stand_ins.update(dict.fromkeys((protocol.name, *names), protocol))
    try:
        yield
    finally:
        _stand_ins.clear()
        _stand_ins.update(before)


def loaded() -> list[type[Protocol]]:
    """The protocols beyond the testbed's own that this process has had to do with."""
    return list(_loaded)


def reference(protocol: type[Protocol]) -> str:
    """The name by which a protocol is found from anywhere on this machine."""
    source = source_of(protocol)
    return protocol.name if source is None else str(source)


@cache
def installed() -> dict[str, EntryPoint]:
    """What installed packages offer; a name of the testbed's own stays the testbed's."""
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in BUILT_IN}


def _load(entry: EntryPoint) -> type[Protocol]:
    where = f"protocol {entry.name} of package {entry.dist.name if entry.dist else '?'}"
    try:
        found = checked(entry.load(), where, BUILT_IN)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # whatever its modules do when they are imported
        raise UserError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from None
    if found.name != entry.name:
        raise UserError(f"{where} calls itself {found.name!r}; both names must be the same")
    return found
