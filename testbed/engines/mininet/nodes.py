"""Mininet's hosts, switches, links and interfaces, set up in bulk instead of one by one.

Mininet starts a shell for each node, and tells it what to do in several commands for each interface.
Here a node is an object only: the kernel's side of all of them is made at once by ``net``. A node's
shell is started when the first command needs it, which in an experiment is never.
"""

import functools
import shutil
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Host as MininetHost
from mininet.node import Node, OVSSwitch

from testbed.engines.mininet.kernel import namespaces
from testbed.engines.mininet.switches import openvswitch
from testbed.errors import UserError


class LazyShell(Node):
    """A node whose shell is started when it is first asked for something."""

    _made = False

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **params)
        self._made = True

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Put off: the constructor calls this."""

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command and return what it says."""
        if not self._made:
            return ""  # Mininet brings up a switch's loopback interface, which is up
        self._need_shell()
        return super().cmd(*args, **kwargs)

    def sendCmd(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
        """Start a command."""
        self._need_shell()
        return super().sendCmd(*args, **kwargs)

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """Start a process at this node, by ``_popen``; there need be no shell to follow."""
        return super().popen(*args, **{"mncmd": ["mnexec", "-d"], **kwargs})

    @classmethod
    def setup(cls) -> None:
        """See that what Mininet runs is there."""
        for program in ("mnexec", "ifconfig"):
            if shutil.which(program) is None:
                raise UserError(f"{program} is missing: run `apt-get install mininet net-tools`")

    def _need_shell(self) -> None:
        if self.shell is None:
            super().startShell()


class Host(LazyShell, MininetHost):
    """A host in a network namespace that is there before any process is."""

    namespace: int | None = None  # the descriptor of its network namespace, once the network is up

    def __init__(self, name: str, **params: Any) -> None:
        # Not "in a namespace" as Mininet means it: that is to make a new one for the shell.
        super().__init__(name, **{**params, "inNamespace": False})

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        assert self.namespace is not None, "the network is up"
        enter = functools.partial(namespaces.enter, self.namespace)
        return super()._popen(cmd, preexec_fn=enter, **params)

    def config(self, ip: str | None = None, mac: str | None = None, **_: Any) -> dict[str, Any]:
        """Only note what ``net`` sets."""
        interface = self.defaultIntf()
        interface.ip, interface.prefixLen, interface.mac = ip, 32, mac
        return {}


class Switch(LazyShell, OVSSwitch):
    """A bridge of the run's own Open vSwitch."""

    def __init__(self, name: str, settings: openvswitch.Settings, **params: Any) -> None:
        super().__init__(name, **params)
        self.settings = settings

    def numbered_ports(self) -> dict[str, int]:
        """Its interfaces and their OpenFlow port numbers."""
        return {str(intf): port for intf, port in self.ports.items() if port}

    def bridge(self) -> openvswitch.Bridge:
        """What Open vSwitch is to make of it."""
        return openvswitch.Bridge(self.name, int(self.dpid, 16), self.numbered_ports())

    def dpctl(self, *args: str) -> Any:
        """Run an ovs-ofctl command, in the version that the bridge speaks."""
        return self.cmd("ovs-ofctl -O OpenFlow13", args[0], self, *args[1:])

    def start(self, controllers: object) -> None:
        """Make it again after it was stopped; Mininet's shell has a command for that."""
        openvswitch.add_bridges([self.bridge()], self.settings)

    @classmethod
    def setup(cls) -> None:
        """Open vSwitch runs: ``net`` has started it."""
        cls.OVSVersion = "3.1"


class Interface(Intf):
    """An interface that ``net`` sets up and Mininet knows of."""

    def config(self, **_: Any) -> dict[str, Any]:
        """Only what was noted when it was made."""
        return {}

    def updateIP(self) -> str | None:  # noqa: N802
        """The address; the command line asks for it whenever a host is named."""
        return self.ip


class VethLink(Link):
    """A veth pair that ``net`` makes."""

    def __init__(self, *args: Any, **params: Any) -> None:
        super().__init__(*args, **{**params, "intf": Interface})

    @classmethod
    def makeIntfPair(cls, *args: Any, **params: Any) -> None:  # noqa: N802
        """Not one by one."""
