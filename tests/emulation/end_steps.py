"""Steps of ``emulated_network`` that end a network, and look at what is left of it."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from testbed.engines.mininet import plan as names
from testbed.engines.mininet.kernel import machine
from testbed.engines.mininet.net import EmulatedNetwork
from testbed.engines.mininet.plan import Plan
from tests.emulation.rings import network, ring, run


def state() -> dict[str, Any]:
    """What a run could leave behind."""
    processes, spaces = [], set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            if words:  # not a thread of the kernel's
                processes.append(words)
                spaces.add(os.stat(entry / "ns" / "net").st_ino)
    return {
        "interfaces": sorted(link["ifname"] for link in json.loads(run("ip", "-j", "link"))),
        "named": run("ip", "netns"),
        "processes": sorted(processes),
        "namespaces": sorted(spaces),
        "files": sorted(str(path) for path in machine.RUN.glob("causal-testbed-*")),
        "mounts": Path("/proc/mounts").read_text(),
        "environment": sorted(name for name in os.environ if name.startswith("OVS_")),
    }


def settle(before: dict[str, Any]) -> dict[str, Any]:
    """What differs from before, once the kernel had time to clear up."""
    for _ in range(50):
        after = state()
        if after == before:
            break
        time.sleep(0.1)
    return {key: [before[key], after[key]] for key in before if before[key] != after[key]}


def occupy(net: EmulatedNetwork) -> None:
    """Have all sorts of processes in the network, and a link to outside, which must vanish with it."""
    net.hosts[0].cmd("sleep 1000 &")
    net.switches[1].cmd("sleep 1000 &")
    net.hosts[1].popen(["sh", "-c", "trap '' TERM HUP INT; sleep 1000; sleep 1000"])
    words = f"ip link add probe{os.getpid()} netns 1 type veth peer name inside"
    run(*words.split())


def guard_of(pid: int) -> int:
    """The guard of a process: its child that has a session of its own."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[3] == entry.parent.name:
                return int(entry.parent.name)
    raise LookupError(f"process {pid} has no guard")


def unguarded() -> dict[str, Any]:
    """What is left of a network whose guard was killed before it ended."""
    before = state()
    with network(ring(3)) as net:
        os.kill(guard_of(os.getpid()), signal.SIGKILL)
        occupy(net)
    return settle(before)


def hold(plan: Plan) -> int:
    """A process that has a network and keeps it; returns when it is up."""
    ready, say = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(KeyboardInterrupt), network(plan) as net:
            occupy(net)
            if os.fork() == 0:  # as the processes of hosts are: it has all that its parent has
                signal.pause()
            os.write(say, b"up")
            while True:
                signal.pause()
        os._exit(0)
    os.close(say)
    assert os.read(ready, 2) == b"up"
    os.close(ready)
    return pid


def killed(number: int) -> dict[str, Any]:
    """What is left of a network whose process a signal ends."""
    before = state()
    pid = hold(ring(3))
    during = state()
    os.kill(pid, number)
    _, status = os.waitpid(pid, 0)
    return {
        "status": status,
        "appeared": sorted(key for key in before if before[key] != during[key]),
        "left": settle(before),
    }


def failed() -> dict[str, Any]:
    """What is left of a network that an exception ends: in use, and half made."""
    found: dict[str, Any] = {}
    before = state()
    with contextlib.suppress(ZeroDivisionError), network(ring(3)) as net:
        occupy(net)
        raise ZeroDivisionError
    found["in use"] = settle(before)
    unmade = patch.object(EmulatedNetwork, "_make_switches", None)
    with contextlib.suppress(TypeError), unmade, network(ring(3)):
        found["half made"] = "was made"
    found.setdefault("half made", settle(before))
    return found


def two_at_once() -> dict[str, Any]:
    """Two networks of the same plan; the one that is left must not notice the other's end."""
    before = state()
    other = hold(ring(3))
    with network(ring(3)) as net:
        replies = net.hosts[0].cmd("ping -c 1 -W 2", names.host_ip(2))
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)
        time.sleep(1)
        replies += net.hosts[0].cmd("ping -c 1 -W 2", names.host_ip(2))
    return {"received": replies.count("1 received"), "left": settle(before)}


STEPS = (failed, unguarded, two_at_once)
