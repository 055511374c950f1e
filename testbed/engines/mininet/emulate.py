"""One emulated run, from a prepared run directory to its events, captures and counters.

Runs where root, netem and Open vSwitch are: on the machine itself, or in the guest of the virtual
engine. What comes out is raw; figures are drawn from it by ``testbed.engines.mininet.summary``.
"""

import time
from collections.abc import Sequence
from math import prod

from testbed.engines.mininet.hosts.conditions import Conditions
from testbed.engines.mininet.hosts.fault_injector import FaultInjector
from testbed.engines.mininet.hosts.supervisor import Supervisor
from testbed.engines.mininet.kernel import netem
from testbed.engines.mininet.kernel.drops import drops, upcalls
from testbed.engines.mininet.kernel.netlink import Netlink
from testbed.engines.mininet.net import routed_network
from testbed.engines.mininet.plan import HOST_NET, UDP_PORT, Plan, build
from testbed.engines.mininet.ways import Ways
from testbed.faults import Fault, Reordering, Slow
from testbed.packets.capture import Capture
from testbed.packets.framing import ETHERNET_BYTES
from testbed.progress import Progress
from testbed.runs.directory import RunDirectory

QUIET_S = 2.0  # a slow machine may pause for long
# what comes in at a switch: the first fragment has the port, the others only the offset
FILTER = (
    f"inbound and udp and src net {HOST_NET} and (dst port {UDP_PORT} or (ip[6:2] & 0x1fff != 0))"
)


def emulate(directory: RunDirectory, progress: Progress) -> None:
    """Run the experiment of a prepared run directory."""
    scenario = directory.scenario
    experiment = scenario.experiment
    plan = build(scenario.network.to_json(), experiment.transport.mtu)
    directory.host_log(0).parent.mkdir(exist_ok=True)
    faults, conditions, ways = scenario.fault_schedule(), Conditions(plan), Ways.of(scenario)
    progress("network", 0, 1)
    metric, library = experiment.transport.routing, experiment.transport.controller
    with routed_network(plan, directory.network_file, directory.path, metric, library, ways) as net:
        progress("network", 1, 1)
        with (
            Supervisor(
                scenario, directory, net.namespaces, conditions, ways, faults.awaited()
            ) as hosts,
            FaultInjector(faults, hosts) as injector,
            Capture(directory.packets, FILTER) as capture,
        ):
            before, losses_before, asked = drops(net.namespaces), _losses(), upcalls()
            quiet = quiet_s(plan, experiment.faults)
            figures = hosts.run(progress, quiet, injector)
            dropped = {key: n - before[key] for key, n in drops(net.namespaces).items()}
            losses = {key: n - losses_before[key] for key, n in _losses().items()}
            asked = upcalls() - asked
    start = time.time_ns() - time.monotonic_ns() + hosts.started
    directory.write_emulation(
        {
            "start_unix_ns": start,
            "controller": net.library,
            "hosts": figures,
            "warm_ups_missing": hosts.warm_ups_missing,
            "captured": capture.counts.captured,
            "capture_dropped": capture.counts.dropped,
            "dropped": dropped,
            "upcalls": asked,
            "links": losses,
            "cut_short": hosts.cut_short,
            "conditions": conditions.history,
            "interfaces": {plan.indexes[name]: ends for name, ends in plan.arrivals.items()},
        }
    )


def _losses() -> dict[str, int]:
    with Netlink() as kernel:
        return netem.losses(kernel)


def quiet_s(plan: Plan, faults: Sequence[Fault]) -> float:
    """How long nothing must move before a run is over: longer than a packet takes for any link."""
    slowness = prod(fault.factor for fault in faults if isinstance(fault, Slow))
    late = max((fault.late_ms for fault in faults if isinstance(fault, Reordering)), default=0.0)
    slowest = max(
        link.delay_ns / 1e9 + slowness * (plan.mtu + ETHERNET_BYTES) * 8 / link.bandwidth_bps
        for link in plan.links
    )
    return QUIET_S + 2 * (slowest + late / 1e3)
