"""Captures what crosses the links, from the kernel's ring to pcap files, with no Python in between.

One libpcap socket on all interfaces, opened through scapy's bindings, sees each packet as it arrives
at a switch port, and libpcap's own dumper writes it: a Python loop over packets would lose some. The
link type is Linux cooked v2, which names the interface, so that the file alone tells a packet's link
and direction; times are in nanoseconds. At a size limit the next file is begun, so that readers can
work in parallel. Packets that the kernel dropped because the ring was full are counted and reported.
"""

import ctypes
import json
import os
import select
import time
import traceback
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, create_string_buffer
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from scapy.libs import winpcapy

from testbed.errors import UserError
from testbed.packets.headers import LINKTYPE_LINUX_SLL2

pcap: Any = winpcapy  # scapy's name for libpcap, on Linux too

PRECISION_NANO = 1  # PCAP_TSTAMP_PRECISION_NANO
RING_BYTES = 64 << 20
BLOCK_MS = 100  # the kernel hands over what it has at least this often
SNAPLEN = 65_535


@dataclass(frozen=True)
class CaptureCounts:
    """Packets that libpcap counted."""

    captured: int
    dropped: int


class Capture:
    """A process that captures while the context lasts; afterwards there are ``counts``."""

    def __init__(self, directory: Path, packet_filter: str, file_bytes: int = 32 << 20) -> None:
        self.directory = directory
        self.packet_filter = packet_filter
        self.file_bytes = file_bytes
        self.counts = CaptureCounts(0, 0)
        self._pid = 0

    def __enter__(self) -> Self:
        answer_in, answer_out = os.pipe()
        stop_in, stop_out = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(answer_in)
            os.close(stop_out)
            _capture_and_exit(self, stop_in, answer_out)
        os.close(answer_out)
        os.close(stop_in)
        self._stop, self._answer = stop_out, os.fdopen(answer_in)
        started = self._answer.readline().strip()
        if started != "capturing":
            self._end()
            raise UserError(f"the capture cannot start: {started or 'its process died'}")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        answer = self._end()
        if answer:
            self.counts = CaptureCounts(**json.loads(answer))
        elif kind is None:
            raise UserError(f"the capture into {self.directory} died before its end")

    def _end(self) -> str:
        os.close(self._stop)  # the capture sees EOF, also if this process is killed
        with self._answer:
            answer = self._answer.read()
        os.waitpid(self._pid, 0)
        return answer


def _capture_and_exit(capture: Capture, stop: int, answer: int) -> None:
    status = 1
    try:
        try:
            handle = _open(capture.packet_filter)
        except OSError as error:
            os.write(answer, f"{error}\n".encode())
        else:
            os.write(answer, b"capturing\n")
            counts = _capture(handle, capture, stop)
            os.write(answer, json.dumps(counts.__dict__).encode())
            status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def _open(packet_filter: str) -> Any:
    """An activated libpcap handle on all interfaces."""
    errors = create_string_buffer(256)
    handle = pcap.pcap_create(b"any", errors)
    if not handle:
        raise OSError(errors.value.decode(errors="replace"))
    pcap.pcap_set_snaplen(handle, SNAPLEN)
    pcap.pcap_set_timeout(handle, BLOCK_MS)
    pcap.pcap_set_buffer_size(handle, RING_BYTES)
    set_precision = pcap._lib.pcap_set_tstamp_precision
    set_precision.argtypes = [ctypes.POINTER(pcap.pcap_t), c_int]
    if set_precision(handle, PRECISION_NANO) != 0:
        raise OSError("this libpcap has no timestamps in nanoseconds")
    program = pcap.bpf_program()
    rules = c_char_p(packet_filter.encode())
    steps: tuple[Callable[[], int], ...] = (
        lambda: pcap.pcap_activate(handle),
        lambda: pcap.pcap_set_datalink(handle, LINKTYPE_LINUX_SLL2),
        lambda: pcap.pcap_compile(handle, byref(program), rules, 1, 0),
        lambda: pcap.pcap_setfilter(handle, byref(program)),
        lambda: pcap.pcap_setnonblock(handle, 1, errors),
    )
    for step in steps:
        if step() < 0:
            raise OSError(pcap.pcap_geterr(handle).decode(errors="replace"))
    return handle


def _capture(handle: Any, capture: Capture, stop: int) -> CaptureCounts:
    poll = select.poll()  # not select(), which knows no more than 1024 open files
    for file in (pcap.pcap_get_selectable_fd(handle), stop):
        poll.register(file, select.POLLIN)
    write = ctypes.cast(pcap.pcap_dump, pcap.pcap_handler)
    files = 0
    dumper = None
    stopping = False
    while True:
        if dumper is None:
            path = capture.directory / f"capture-{files:04}.pcap"
            dumper = pcap.pcap_dump_open(handle, str(path).encode())
            files += 1
        if not stopping and stop in dict(poll.poll()):
            stopping = True
            time.sleep(3 * BLOCK_MS / 1000)  # until the kernel has handed over its last block
        taken = pcap.pcap_dispatch(
            handle, -1, write, ctypes.cast(dumper, ctypes.POINTER(ctypes.c_ubyte))
        )
        if pcap.pcap_dump_ftell(dumper) >= capture.file_bytes:
            pcap.pcap_dump_close(dumper)
            dumper = None
        if stopping and taken <= 0:
            break
    if dumper is not None:
        pcap.pcap_dump_close(dumper)
    counted = pcap.pcap_stat()
    pcap.pcap_stats(handle, byref(counted))
    return CaptureCounts(counted.ps_recv, counted.ps_drop + counted.ps_ifdrop)
