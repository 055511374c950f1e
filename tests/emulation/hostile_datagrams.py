"""Runs in a guest: an emulation one of whose hosts is sent 10,000 datagrams that are no messages.

python -m tests.emulation.hostile_datagrams DIRECTORY

They come in the name of another host and its port, so that only their content can give them away,
and by the loopback interface of the host itself, so that no link carries them.
"""

import os
import random
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from testbed.engines.mininet import emulate
from testbed.engines.mininet.hosts.supervisor import Supervisor
from testbed.engines.mininet.kernel.namespaces import enter
from testbed.engines.mininet.plan import UDP_PORT, host_ip
from testbed.protocols import Multicast, Send
from testbed.runs.directory import RunDirectory

VICTIM, PRETENDED = 3, 1
NUMBER = 10_000
AT_ONCE = 100
PAUSE_S = 0.001


def hostile(genuine: bytes, rng: random.Random) -> Iterator[bytes]:
    """Random bytes, messages that are cut off, and messages with a bit flipped, in turn."""
    for number in range(NUMBER):
        if number % 3 == 0:
            yield rng.randbytes(rng.randrange(200))
        elif number % 3 == 1:
            yield genuine[: rng.randrange(len(genuine))]
        else:
            bit = rng.randrange(8 * len(genuine))
            flipped = bytearray(genuine)
            flipped[bit // 8] ^= 1 << bit % 8
            yield bytes(flipped)


class Attacked(Supervisor):
    """Hosts beside which there is a process that attacks one of them as soon as they run."""

    def __enter__(self) -> "Attacked":
        super().__enter__()
        if os.fork() == 0:
            try:
                self._attack()
            finally:
                os._exit(0)
        return self

    def _attack(self) -> None:
        enter(self.namespaces[VICTIM])
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        source, destination = (socket.inet_aton(host_ip(node)) for node in (PRETENDED, VICTIM))
        host = self.hosts[PRETENDED]
        message = next(
            effect.message
            for effect in host.node.protocol.multicast(b"payload", None, 0)
            if isinstance(effect, Send | Multicast)
        )
        genuine = host.codec.encode(message)
        time.sleep(0.5)  # the hosts start after that long
        for number, data in enumerate(hostile(genuine, random.Random(1))):
            udp = struct.pack(">HHHH", UDP_PORT, UDP_PORT, 8 + len(data), 0)
            length = 20 + len(udp) + len(data)
            ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, socket.IPPROTO_UDP, 0)
            raw.sendto(ip + source + destination + udp + data, (host_ip(VICTIM), 0))
            if number % AT_ONCE == AT_ONCE - 1:
                time.sleep(PAUSE_S)


def main() -> None:
    with patch.object(emulate, "Supervisor", Attacked):
        emulate.emulate(RunDirectory(Path(sys.argv[1])), lambda stage, done, of: None)


if __name__ == "__main__":
    main()
