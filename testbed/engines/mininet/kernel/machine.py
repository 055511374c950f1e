"""What a machine must have for an emulated network, and how a namespace is prepared on it.

All is looked at before anything is made, so that what is missing is told in one sentence.
"""

import ctypes
import fcntl
import logging
import os
import resource
import socket
import struct
from contextlib import suppress
from pathlib import Path

from testbed.engines import needs
from testbed.engines.mininet.kernel import namespaces, netem, netlink
from testbed.engines.mininet.kernel.netlink import Netlink, NetlinkError
from testbed.engines.mininet.plan import Plan, PlannedLink
from testbed.errors import UserError

RUN = Path("/run")
LOOPBACK = 1
_NETLINK_GENERIC = 16
_SIOCETHTOOL, _GET_TX_CHECKSUM, _SET_TX_CHECKSUM = 0x8946, 0x16, 0x17
_BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")
_ICMP_RATE_LIMIT = Path("/proc/sys/net/ipv4/icmp_ratelimit")
_NEVER_MS = 2_000_000_000  # between two messages to one host, and before the first
_log = logging.getLogger(__name__)


def check() -> None:
    """Raise UserError if this machine cannot have an emulated network."""
    needs.require_emulation(needs.root())
    with namespaces.returning():
        os.close(namespaces.enter_fresh())
        try:
            with Netlink() as kernel:
                kernel.ask(
                    list(netem.requests(LOOPBACK, netem.queues(PlannedLink(0, 1, 1, 8)), "lo"))
                )
        except NetlinkError as error:
            raise UserError(
                f"this kernel has no netem ({error.strerror}): try `modprobe sch_netem`, "
                "or choose the engine virtual"
            ) from None


def datapath() -> str:
    """Open vSwitch's datapath: the kernel's where there is one."""
    try:
        with Netlink(_NETLINK_GENERIC) as kernel:
            kernel.ask([netlink.generic_family("ovs_datapath")])
    except NetlinkError:
        _log.warning("this kernel has no Open vSwitch: packets pass through a process, slowly")
        return "netdev"
    return "system"


def prepare_process(plan: Plan) -> None:
    """Raise limits that a large network would meet."""
    _allow_files(4 * plan.nodes + 1024)
    _allow_backlog(10 * len(plan.arrivals))


def prepare_namespace() -> None:
    """Make the new namespace that this thread is in fit for the switches."""
    silence_ipv6()
    with Netlink() as kernel:
        kernel.ask([netlink.link_up(LOOPBACK)])


def silence_ipv6() -> None:
    """Switch IPv6 off in this namespace, for interfaces yet to come; it would talk unasked."""
    for which in ("all", "default"):
        with suppress(FileNotFoundError):  # a kernel without IPv6
            Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1")


def silence_icmp() -> None:
    """Have this namespace send no error messages: to say that nobody listens would load links."""
    _ICMP_RATE_LIMIT.write_text(str(_NEVER_MS))


def checksum_in_software(some_socket: socket.socket, interface: str) -> None:
    """Have packets leave an interface with their checksum, and in segments: veth leaves both undone.

    Without the checksum an interface can neither scatter nor segment: the kernel switches off the
    rest by itself.
    """
    for command, expected in ((_SET_TX_CHECKSUM, 0), (_GET_TX_CHECKSUM, 0)):
        value = ctypes.create_string_buffer(struct.pack("=II", command, 0), 8)
        request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
        fcntl.ioctl(some_socket, _SIOCETHTOOL, request)
        if struct.unpack("=II", value.raw)[1] != expected:
            raise UserError(f"the kernel does not let {interface} compute checksums in software")


def _allow_files(number: int) -> None:
    """One for each host's namespace, and a few for its process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, max(hard, number)))


def _allow_backlog(packets: int) -> None:
    """See that packets which arrive at one instant, one at each port, find room.

    It is a setting of the whole machine, so that it is changed only in a guest, which is ours.
    """
    allowed = int(_BACKLOG.read_text()) if _BACKLOG.exists() else packets  # not for us to see
    if allowed >= packets:
        return
    if "TESTBED_GUEST" in os.environ:
        _BACKLOG.write_text(str(packets))
    elif allowed < packets // 10:
        _log.warning(
            "packets may be lost between links: `sysctl net.core.netdev_max_backlog=%d` fixes it",
            packets,
        )
