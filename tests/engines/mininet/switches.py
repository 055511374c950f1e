"""A pretended OpenFlow 1.3 switch: as much of one as a controller needs to see."""

import socket
import struct
import threading
from collections.abc import Set
from contextlib import suppress
from typing import Self

HELLO, ERROR, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 5, 6
PORT_STATUS, FLOW_MOD, GROUP_MOD, MULTIPART_REQUEST = 12, 14, 15, 18
MULTIPART_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 19, 20, 21
PORT_DESCRIPTION = 13
MODIFIED = 2
LINK_DOWN = 1


class PretendedSwitch:
    """Connects to a controller, answers it, and counts what it is told."""

    def __init__(
        self, controller: int, dpid: int, ports: int, *, down: Set[int] = frozenset()
    ) -> None:
        self.dpid, self.ports, self.down = dpid, ports, set(down)
        self.told: list[int] = []
        """The types of the messages that came."""
        self.refuse: tuple[int, int] | None = None
        """The type and code of the error with which a flow is to be answered."""
        self.answers = threading.Event()
        """Barriers are answered only while it is set."""
        self.answers.set()
        self._connection = socket.create_connection(("127.0.0.1", controller))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._send(HELLO)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        with suppress(OSError):  # the controller may have ended
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def set_port(self, port: int, *, up: bool) -> None:
        """Have a port go up or down, and tell."""
        (self.down.discard if up else self.down.add)(port)
        self._send(PORT_STATUS, struct.pack(">B7x", MODIFIED) + self._describe(port))

    def _serve(self) -> None:
        with suppress(OSError), self._connection.makefile("rb") as stream:
            while len(head := stream.read(8)) == 8:
                _, kind, length, xid = struct.unpack(">BBHI", head)
                body = stream.read(length - 8)
                self.told.append(kind)
                self._answer(kind, xid, head + body)

    def _answer(self, kind: int, xid: int, message: bytes) -> None:
        if kind == FEATURES_REQUEST:
            self._send(FEATURES_REPLY, struct.pack(">QIBBxxII", self.dpid, 0, 254, 0, 0, 0), xid)
        elif kind == MULTIPART_REQUEST:
            ports = b"".join(map(self._describe, range(1, self.ports + 1)))
            head = struct.pack(">HHxxxx", PORT_DESCRIPTION, 0)
            self._send(MULTIPART_REPLY, head + ports, xid)
        elif kind == FLOW_MOD and self.refuse:
            self._send(ERROR, struct.pack(">HH", *self.refuse) + message[:64], xid)
        elif kind == BARRIER_REQUEST:
            self.answers.wait()
            self._send(BARRIER_REPLY, xid=xid)

    def _describe(self, port: int) -> bytes:
        state = LINK_DOWN if port in self.down else 0
        name = f"s-eth{port}".encode()
        return struct.pack(">I4x6s2x16sII24x", port, bytes(6), name, 0, state)

    def _send(self, kind: int, body: bytes = b"", xid: int = 0) -> None:
        self._connection.sendall(struct.pack(">BBHI", 4, kind, 8 + len(body), xid) + body)
