"""What goes between the grader and a cell: lists of plain values as JSON, each after its length.

Both ends use it. Nothing is ever unpickled, and a frame that is too long is refused before it is
read."""

import json
import struct
from collections.abc import Callable
from typing import Any

LENGTH = struct.Struct("!I")
LONGEST = 8 << 20
CHUNK = 1 << 16


class FrameError(Exception):
    """The other end is gone, or does not keep to the format."""


class Frames:
    """Reads and writes frames by two functions on bytes."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], int]) -> None:
        self._read, self._write = read, write
        self._rest = b""

    def put(self, content: Any) -> None:
        """Write a frame."""
        data = json.dumps(content, separators=(",", ":")).encode()
        left = memoryview(LENGTH.pack(len(data)) + data)
        while left:
            left = left[self._write(bytes(left)) :]

    def get(self) -> Any:
        """Read a frame."""
        (length,) = LENGTH.unpack(self._take(LENGTH.size))
        if length > LONGEST:
            raise FrameError(f"a frame of {length:,} bytes, where {LONGEST:,} is the most")
        try:
            return json.loads(self._take(length))
        except (ValueError, RecursionError) as error:
            raise FrameError(f"not a frame: {error}") from None

    def _take(self, count: int) -> bytes:
        parts, missing = [self._rest], count - len(self._rest)
        while missing > 0:
            part = self._read(max(CHUNK, missing))
            if not part:
                raise FrameError("the other end is gone")
            parts.append(part)
            missing -= len(part)
        data = b"".join(parts)
        self._rest = data[count:]
        return data[:count]
