"""The Lua dissector for Wireshark: a reader of layouts, and the layouts of all protocols as tables.

Nothing of a format is written in Lua: the header comes from ``protocols.wire``, everything else from
``layouts``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

from testbed.export.layouts import (
    CHANNEL,
    WORDS,
    Bits,
    Bytes,
    Field,
    Int,
    Ints,
    Layout,
    Repeat,
    When,
    layout_of,
)
from testbed.protocols import PROTOCOLS, Protocol
from testbed.protocols.channel.segments import ACK_KIND
from testbed.protocols.wire import CHECK_AT, HEADER, MAGIC, VERSION, Header

ENTRIES = 64  # of a vector that have a field of their own, to filter by
WIDTHS = {"B": 1, "H": 2, "I": 4, "Q": 8}


def header_layout() -> Layout:
    """The common header after magic and version."""
    widths = [WIDTHS[kind] for kind in re.sub(r"^!2sB", "", HEADER.format)]
    return tuple(Int(name, width) for name, width in zip(Header._fields, widths, strict=True))


def layouts_of(protocol: type[Protocol]) -> dict[int, tuple[str, Layout]]:
    """Of each kind of message of a protocol, by number: its name and its layout."""
    return {kind.kind: (kind.__name__, layout_of(kind)) for kind in protocol.messages}


def dissector() -> str:
    """The whole script."""
    protocols = {
        protocol.wire_id: {
            "name": name,
            "kinds": {
                number: {"name": kind, "layout": layout}
                for number, (kind, layout) in layouts_of(protocol).items()
            },
        }
        for name, protocol in PROTOCOLS.items()
    }
    described = [header_layout(), WORDS]
    described += [layout for each in PROTOCOLS.values() for _, layout in layouts_of(each).values()]
    named = [pair for layout in described for pair in names(layout)]
    named += [*names(CHANNEL, "channel."), ("payload", Bytes)]
    of_type = {
        kind: sorted({name for name, type in named if issubclass(type, kind)})
        for kind in (Int, Ints, Bytes)
    }
    tables = {
        "MAGIC": MAGIC.decode(),
        "VERSION": VERSION,
        "HEADER_SIZE": HEADER.size,
        "CHECK_AT": CHECK_AT,
        "ACK": ACK_KIND,
        "ENTRIES": ENTRIES,
        "HEADER": header_layout(),
        "CHANNEL": CHANNEL,
        "WORDS": WORDS,
        "INTS": sorted({*of_type[Int], *of_type[Ints]}),
        "VECTORS": of_type[Ints],
        "BYTES": of_type[Bytes],
        "PROTOCOLS": protocols,
    }
    lua = "\n".join(f"local {name} = {_lua(value)}" for name, value in tables.items())
    return files(__package__).joinpath("dissector.lua").read_text().replace("--@TABLES@", lua)


def names(layout: Layout, prefix: str = "") -> Iterator[tuple[str, type[Any]]]:
    """The names of all fields of a layout, and what they are."""
    for field in layout:
        if isinstance(field, Int | Ints | Bytes):
            yield prefix + field.name, type(field)
        elif isinstance(field, Bits):
            yield from ((prefix + name, Int) for name, _, _ in field.fields)
        elif isinstance(field, Repeat):
            yield from names(field.fields, f"{prefix}{field.name}.")
        elif isinstance(field, When):
            yield from names(field.fields, prefix)


def _lua(value: Any) -> str:
    """A value as Lua writes it; a field of a layout is a list that begins with its type."""
    if isinstance(value, Field):
        return _list((type(value).__name__.lower(), *value))
    if isinstance(value, Mapping):
        keys = (f"[{_lua(key)}]={_lua(item)}" for key, item in value.items())
        return "{" + ",".join(keys) + "}"
    if isinstance(value, list | tuple):
        return _list(value)
    return f'"{value}"' if isinstance(value, str) else str(value)


def _list(values: Iterable[Any]) -> str:
    return "{" + ",".join(map(_lua, values)) + "}"
