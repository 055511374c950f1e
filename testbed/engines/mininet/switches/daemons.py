"""Starts Open vSwitch's daemons for one run, where no service manager does it.

Everything lives in one directory, by default where ``ovs-vsctl``, ``ovs-ofctl`` and Mininet look by
themselves. In a guest a process costs far more than on a machine, so only three are started (one to
create the database, and the two daemons); what ``ovs-vsctl init`` and ``ovs-appctl`` would do is said
to the daemons' sockets directly.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

DIRECTORY = Path("/run/openvswitch")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
# lib/ovs-thread.c counts the CPUs if more than this has passed since "last time", which is 0.
_CPU_COUNT_PERIOD_S = 10.0
# How long the kernel remembers a flow without packets: by default 10 s, after which a packet has to
# go up to ovs-vswitchd again. With a clock that was set forward (see _warp) it would forget all
# flows all the time, as it takes the kernel's time stamps for that much older than they are. Nor are
# the ports' statistics wanted, which would cost time again and again, with hundreds of ports.
_NEVER = ("max-idle", "stats-update-interval")
_NEVER_MS = 1_000_000_000


class OpenVSwitchError(Exception):
    """Open vSwitch could not be started."""


@contextmanager
def open_vswitch(directory: Path = DIRECTORY) -> Iterator[Path]:
    """Run Open vSwitch with the kernel's datapath; yield the path of its database socket."""
    directory.mkdir(parents=True, exist_ok=True)
    database, server_socket = directory / "conf.db", directory / "db.sock"
    database.unlink(missing_ok=True)
    _run("ovsdb-tool", "create", str(database), str(SCHEMA))
    try:
        _start("ovsdb-server", directory, str(database), f"--remote=punix:{server_socket}")
        # ovs-vswitchd detaches, and so tells that it is ready, only once this row is there.
        row = {"other_config": ["map", [[setting, str(_NEVER_MS)] for setting in _NEVER]]}
        insert = {"op": "insert", "table": "Open_vSwitch", "row": row}
        call_daemon(server_socket, "transact", ["Open_vSwitch", insert])
        if time.monotonic() > _CPU_COUNT_PERIOD_S:
            _start("ovs-vswitchd", directory, f"unix:{server_socket}")
        else:
            # Its clock can be set only if it is told to expect tests.
            _start("ovs-vswitchd", directory, f"unix:{server_socket}", "--enable-dummy")
            _warp(directory)
        yield server_socket
    finally:
        for daemon in ("ovs-vswitchd", "ovsdb-server"):
            _stop(directory / f"{daemon}.pid")


def _start(daemon: str, directory: Path, *arguments: str) -> None:
    """Start a daemon and wait until it is ready."""
    log = f"--log-file={directory / daemon}.log"
    pidfile = f"--pidfile={directory / daemon}.pid"
    quiet = ("-vconsole:off", "-vsyslog:off")
    _run(daemon, *arguments, "--detach", "--no-chdir", pidfile, log, *quiet)


def _warp(directory: Path) -> None:
    """Set the monotonic clock of ovs-vswitchd forward, so that it counts the CPUs.

    In a guest that was booted a moment ago it takes their number for 0, starts as many threads to
    handle packets, and loses them all. In virtual time the guest lets the first seconds pass before
    anything starts; in real time nobody wants to wait for them.
    """
    milliseconds = str(int(_CPU_COUNT_PERIOD_S * 1500))
    call_switch(directory, "time/warp", [milliseconds])


def call_switch(directory: Path, method: str, parameters: list[Any]) -> Any:
    """Have ovs-vswitchd do what ``ovs-appctl`` would ask of it, and return its answer."""
    pid = (directory / "ovs-vswitchd.pid").read_text().strip()
    return call_daemon(directory / f"ovs-vswitchd.{pid}.ctl", method, parameters)


def _run(program: str, *arguments: str) -> None:
    try:
        subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise OpenVSwitchError(
            f"{program} is not installed: the Debian package is openvswitch-switch."
        ) from None
    except subprocess.CalledProcessError as error:
        raise OpenVSwitchError(
            f"{program} failed with status {error.returncode}: {error.stderr.strip()}"
        ) from error


def call_daemon(path: Path, method: str, parameters: list[Any]) -> Any:
    """Call a daemon of Open vSwitch by JSON-RPC (RFC 7047, section 4) and return its answer."""
    request = {"id": 0, "method": method, "params": parameters}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode())
        answer, decoder = "", json.JSONDecoder()
        while data := connection.recv(65536):
            answer += data.decode()
            if not answer.endswith("}"):
                continue
            with suppress(json.JSONDecodeError):  # not all of it is here yet
                reply, _ = decoder.raw_decode(answer)
                if reply["error"] is not None:
                    break
                return reply["result"]
    raise OpenVSwitchError(f"{path.name} did not do {method}: {answer or 'no answer'}")


def _stop(pidfile: Path) -> None:
    with suppress(FileNotFoundError, ValueError, ProcessLookupError):
        os.kill(int(pidfile.read_text()), signal.SIGTERM)
