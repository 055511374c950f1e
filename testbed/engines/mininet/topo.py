"""The plan as a Mininet topology."""

from typing import Any

from mininet.topo import Topo

from testbed.engines.mininet import plan as names
from testbed.engines.mininet.plan import Plan


class PlannedTopo(Topo):
    """A host and a switch for each node, and the links between switches."""

    def build(self, plan: Plan, **switch_options: Any) -> None:
        """Add all, with the names, ports and addresses of the plan."""
        for node in range(plan.nodes):
            host, switch = names.host_name(node), names.switch_name(node)
            self.addHost(host, ip=names.host_ip(node), mac=names.host_mac(node))
            self.addSwitch(switch, dpid=f"{names.dpid(node):x}", batch=False, **switch_options)
            self.addLink(
                host,
                switch,
                port1=0,
                port2=names.HOST_PORT,
                addr1=names.host_mac(node),
                addr2=names.port_mac(node, names.HOST_PORT),
            )
        for link in plan.links:
            port1, port2 = plan.ports[link.a][link.b], plan.ports[link.b][link.a]
            self.addLink(
                names.switch_name(link.a),
                names.switch_name(link.b),
                port1=port1,
                port2=port2,
                addr1=names.port_mac(link.a, port1),
                addr2=names.port_mac(link.b, port2),
            )
