"""A clock that goes on while a guest computes: the processor time that the guest has used.

In virtual time all clocks of a guest stand still while a program computes, and to read one takes a
nanosecond. So whoever runs the guest writes this one into the program's memory, to a page at an address
at which programs have nothing else; to read memory takes no virtual time at all.
"""

import ctypes
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

ADDRESS = 1 << 40
_MARK = int.from_bytes(b"cpu time", "little")  # by which the page is known
_WORD = struct.Struct("<Q")
_MAP_FIXED_NOREPLACE = 0x100000
_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


@contextmanager
def host_clock() -> Iterator[memoryview]:
    """The clock as a memory of one number, in milliseconds; it stays 0 if nobody sets it."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED_NOREPLACE
    access = mmap.PROT_READ | mmap.PROT_WRITE
    if _libc.mmap(ADDRESS, mmap.PAGESIZE, access, private, -1, 0) in {None, _FAILED}:
        raise OSError(f"there is something else in memory at {ADDRESS:#x}")
    words = memoryview((ctypes.c_uint64 * 2).from_address(ADDRESS)).cast("B").cast("Q")
    words[0], words[1] = _MARK, 0
    try:
        with words, words[1:] as clock:
            yield clock
    finally:
        _libc.munmap(ADDRESS, mmap.PAGESIZE)


def set_host_clock(pid: int, used_s: float) -> None:
    """Set the clock of a process, if it has one and its memory may be written."""
    with suppress(OSError), open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        if os.pread(memory.fileno(), _WORD.size, ADDRESS) == _WORD.pack(_MARK):
            os.pwrite(memory.fileno(), _WORD.pack(round(used_s * 1000)), ADDRESS + _WORD.size)
