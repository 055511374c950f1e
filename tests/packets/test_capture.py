"""Captures from the kernel's ring to files, on this machine's loopback; needs root."""

import os
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.errors import UserError
from testbed.packets.capture import BLOCK_MS, Capture
from testbed.packets.pcap import read_packets

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="capturing needs root")


@pytest.fixture
def many_open_files() -> Iterator[None]:
    """More than select() knows: hundreds of hosts have several pipes each."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, max(2000, before[1])))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for file in opened:
        os.close(file)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_open_files")
def test_every_packet_is_there_in_order_over_several_files(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        port = receiver.getsockname()[1]
        with (
            Capture(tmp_path, f"inbound and udp dst port {port}", file_bytes=10_000) as capture,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            for size in range(600):
                sender.sendto(bytes(size), ("127.0.0.1", port))
                receiver.recv(1000)
                if size % 200 == 199:
                    time.sleep(3 * BLOCK_MS / 1000)  # the kernel hands over what it has
    assert len(list(tmp_path.glob("*.pcap"))) >= 3
    packets = read_packets(tmp_path)
    assert packets.length.tolist() == [28 + size for size in range(600)]
    assert (packets.time[1:] >= packets.time[:-1]).all()
    assert set(packets.source.tolist()) == {0x7F000001}
    assert capture.counts.captured == 600
    assert capture.counts.dropped == 0


def test_a_capture_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"the capture cannot start: .*syntax error"),
        Capture(tmp_path, "no such filter"),
    ):
        pytest.fail("it started")


def test_a_directory_without_captures_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no captures"):
        read_packets(tmp_path)
    (tmp_path / "x.pcap").write_bytes(b"something else that is long enough")
    with pytest.raises(UserError, match=r"x\.pcap: not a nanosecond capture"):
        read_packets(tmp_path)
