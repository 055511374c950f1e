"""Reads control information by its layout: a second, independent interpreter of layouts, in Python."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt

from testbed.export.layouts import (
    REST,
    Bits,
    Bytes,
    Field,
    Int,
    Ints,
    Layout,
    Nested,
    Repeat,
    Special,
    When,
)

Values = Iterator[tuple[str, int | bytes]]


@dataclass
class Reader:
    """What is left of the bytes of a message among n processes, and the layouts by kind."""

    data: bytes
    n: int
    kinds: Mapping[int, tuple[str, Layout]]

    def take(self, size: int) -> bytes:
        assert size <= len(self.data), "cut short"
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def read(self, layout: Layout, env: dict[str, int], prefix: str = "") -> Values:
        """The names and values of all fields, in order."""
        for field in layout:
            match field:
                case Repeat(name, times, fields):
                    left = len(self.data) if times == REST else self.number(times, env)
                    while left and (times != REST or self.data):
                        yield from self.read(fields, {}, f"{prefix}{name}.")
                        left -= 1
                case When(name, fields):
                    if self.data if name == REST else env[name]:
                        yield from self.read(fields, env, prefix)
                case Nested(kind, length):
                    inner = Reader(self.take(env[length]), self.n, self.kinds)
                    yield from inner.read(self.kinds[self.number(kind, env)][1], {})
                    assert not inner.data
                case Special("matrix"):
                    env["entries"] = isqrt(len(self.data) // 4) ** 2
                case Special("bits"):
                    env["bit_bytes"] = 4 * -(-self.n * (self.n + 1) // 32)
                case _:
                    yield from ((prefix + name, value) for name, value in self.values(field, env))

    def values(self, field: Field, env: dict[str, int]) -> Values:
        """The values of a field that has no fields in it."""
        match field:
            case Int(name, width):
                env[name] = self.integer(self.width(width, env))
                yield name, env[name]
            case Ints(name, times, width):
                size = self.width(width, env)
                for _ in range(self.number(times, env, size)):
                    yield name, self.integer(size)
            case Bits(parts):
                word = self.integer(4)
                for name, lowest, bits in parts:
                    env[name] = word >> lowest & (1 << bits) - 1
                    yield name, env[name]
            case Bytes(name, times):
                if value := self.take(self.number(times, env)):
                    yield name, value

    def number(self, times: int | str, env: Mapping[str, int], size: int = 1) -> int:
        if times == REST:
            return len(self.data) // size
        return env[times] if isinstance(times, str) else times

    @staticmethod
    def width(width: int | str, env: Mapping[str, int]) -> int:
        return width if isinstance(width, int) else 8 if env[width] else 4
