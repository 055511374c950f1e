"""What the emulation itself lost, where the experiment wanted no loss: counted, never guessed."""

import re
from collections.abc import Sequence
from pathlib import Path

from testbed.engines.mininet.kernel import namespaces
from testbed.engines.mininet.switches import openvswitch

_SOFTNET = Path("/proc/net/softnet_stat")
_SNMP = Path("/proc/thread-self/net/snmp")  # of the namespace that this thread is in


def drops(hosts: Sequence[int]) -> dict[str, int]:
    """Packets lost so far, by where; ``hosts`` are the descriptors of the hosts' namespaces.

    - kernel_dropped: found no room between two interfaces, on the whole machine;
    - upcalls_lost: a switch had to ask its daemon about them, and found no room;
    - udp_errors: a host could not take them, in most cases because its socket's buffer was full.
    """
    softnet = (line.split() for line in _SOFTNET.read_text().splitlines())
    return {
        "kernel_dropped": sum(int(counts[1], 16) for counts in softnet),
        "upcalls_lost": _counted("lost"),
        "udp_errors": _udp_errors(hosts),
    }


def upcalls() -> int:
    """Packets about which a switch has asked its daemon so far: others may have overtaken them."""
    return _counted("missed")


def _counted(what: str) -> int:
    return sum(map(int, re.findall(rf"{what}:(\d+)", openvswitch.datapath_statistics())))


def _udp_errors(hosts: Sequence[int]) -> int:
    errors = 0
    with namespaces.returning():
        for namespace in hosts:
            namespaces.enter(namespace)
            keys, values = (
                line.split() for line in _SNMP.read_text().splitlines() if line.startswith("Udp:")
            )
            errors += int(values[keys.index("InErrors")])
    return errors
