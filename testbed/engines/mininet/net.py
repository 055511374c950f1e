"""Brings the network of a plan up, as a Mininet network, and takes it down again.

The calling process moves into a network namespace of the run's own, in which there are the switches'
ports, a private Open vSwitch, and whatever else the process starts: a controller listens there and a
capture looks there, and no other run nor the machine itself is in the way. Hosts have namespaces
besides. None has a name, so that all of it ends with the processes in it; a guard sees to those.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mininet.net import Mininet

from testbed.engines.mininet import nodes
from testbed.engines.mininet import plan as names
from testbed.engines.mininet.controller.controller import Controller
from testbed.engines.mininet.controller.process import Library
from testbed.engines.mininet.guard import Guard
from testbed.engines.mininet.kernel import machine, namespaces, netem, netlink, steering
from testbed.engines.mininet.kernel.netlink import End, Netlink
from testbed.engines.mininet.plan import Plan
from testbed.engines.mininet.switches import openvswitch
from testbed.engines.mininet.topo import PlannedTopo
from testbed.engines.mininet.ways import Ways
from testbed.errors import UserError
from testbed.topologies.routing import Metric

CONTROLLER = f"tcp:127.0.0.1:{names.CONTROLLER_PORT}"


class EmulatedNetwork(Mininet):
    """A Mininet network, set up in bulk; use ``emulated_network`` to have one."""

    def __init__(self, plan: Plan, settings: openvswitch.Settings, guard: Guard) -> None:
        self.plan = plan
        self.guard = guard
        self.settings = settings
        self.library: Library = "auto"  # the controller's, when the rules are in place
        Mininet.inited = True  # else it would change settings of the machine, such as buffer sizes
        super().__init__(
            PlannedTopo(plan, settings=settings),
            host=nodes.Host,
            switch=nodes.Switch,
            link=nodes.VethLink,
            controller=None,
        )

    @property
    def namespaces(self) -> list[int]:
        """The descriptors of the hosts' network namespaces, for ``namespaces.enter``."""
        return [host.namespace for host in self.hosts]

    def start(self) -> None:
        """Make everything in the kernel and in Open vSwitch; return when it is there."""
        with Netlink() as kernel:
            self._make_hosts()
            self._make_links(kernel)
            self._make_switches()
            self._check_queues(kernel)

    def stop(self) -> None:
        """End the shells that were started; the guard does the rest."""
        for node in [*self.hosts, *self.switches]:
            node.terminate()
        for host in self.hosts:
            if host.namespace is not None:
                os.close(host.namespace)
                host.namespace = None

    def _make_hosts(self) -> None:
        with namespaces.returning() as home:
            for node, host in enumerate(self.hosts):
                host.namespace = namespaces.enter_fresh()
                self._make_host(node, host.namespace, home)
        self.guard.watch(self.namespaces)

    def _make_host(self, node: int, namespace: int, home: int) -> None:
        machine.silence_ipv6()
        machine.silence_icmp()
        index = names.HOST_INDEX
        port = names.switch_interface(node, names.HOST_PORT)
        inside = End(
            names.host_interface(node),
            index,
            names.host_mac(node),
            namespace,
            netlink.IFF_UP | netlink.IFF_NOARP,
        )
        mac = names.port_mac(node, names.HOST_PORT)
        outside = End(port, self.plan.indexes[port], mac, home)
        with Netlink() as kernel:
            kernel.ask(
                [
                    netlink.link_up(machine.LOOPBACK),
                    netlink.veth(inside, outside, self.plan.mtu),
                    netlink.address(index, names.host_ip(node)),
                    netlink.neighbour(index, names.GATEWAY_IP, names.GATEWAY_MAC),
                    netlink.default_route(index, names.GATEWAY_IP),
                ]
            )
            machine.checksum_in_software(kernel.socket, inside.name)

    def _make_links(self, kernel: Netlink) -> None:
        plan = self.plan
        home = namespaces.current()
        requests = []
        for link in plan.links:
            ends = []
            for node, other in ((link.a, link.b), (link.b, link.a)):
                port = plan.ports[node][other]
                name = names.switch_interface(node, port)
                ends.append(End(name, plan.indexes[name], names.port_mac(node, port), home))
            requests.append(netlink.veth(ends[0], ends[1], plan.mtu))
        requests += [netlink.link_up(index) for index in plan.indexes.values()]
        for name, link in plan.directions():
            requests += netem.requests(plan.indexes[name], netem.queues(link), name)
        kernel.ask(requests)
        steering.assign(plan.indexes)
        os.close(home)

    def _make_switches(self) -> None:
        openvswitch.add_bridges([switch.bridge() for switch in self.switches], self.settings)
        found = openvswitch.port_numbers()
        for switch in self.switches:
            for interface, port in switch.numbered_ports().items():
                if found.get(interface) != port:
                    raise UserError(
                        f"{interface} was to be port {port} of {switch.name}, and Open vSwitch "
                        f"made it {found.get(interface)}"
                    )

    def _check_queues(self, kernel: Netlink) -> None:
        """Read back what was set; Open vSwitch, for one, likes to remove it."""
        wanted = {
            name: (self.plan.indexes[name], netem.queues(link))
            for name, link in self.plan.directions()
        }
        advice = "; is a program changing queues on this machine?"
        netem.read_back(kernel, wanted, "was set", advice)


@contextmanager
def emulated_network(plan: Plan, controller: str | None = CONTROLLER) -> Iterator[EmulatedNetwork]:
    """Have the network of a plan up, and be in its namespace, for as long as this lasts.

    Its bridges connect to the controller, which may be started before or after, but in this
    namespace. Every process that is started in it or in a host's is killed at the end.
    """
    machine.check()
    machine.prepare_process(plan)
    with namespaces.returning():
        home = namespaces.enter_fresh()
        machine.prepare_namespace()
        directory = Path(tempfile.mkdtemp(prefix="causal-testbed-", dir=machine.RUN))
        guard = Guard(directory)
        try:
            guard.watch([home])
            with openvswitch.running(directory):
                settings = openvswitch.Settings(controller, machine.datapath())
                network = EmulatedNetwork(plan, settings, guard)
                try:
                    network.start()
                    yield network
                finally:
                    network.stop()
        finally:
            os.close(home)
            guard.clean_up()


@contextmanager
def routed_network(
    plan: Plan,
    network_json: Path,
    directory: Path,
    metric: Metric,
    library: Library,
    ways: Ways | None = None,
) -> Iterator[EmulatedNetwork]:
    """Have the network of a plan up with its rules in place; the controller logs to a directory."""
    with (
        emulated_network(plan) as network,
        Controller(
            network_json, directory, library=library, metric=metric, ways=ways
        ) as controller,
    ):
        controller.wait_until_ready()
        network.library = controller.library
        yield network
