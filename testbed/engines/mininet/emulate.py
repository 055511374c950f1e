"""One emulated run, from a prepared run directory to its events, captures and counters.

Runs where root, netem and Open vSwitch are: on the machine itself, or in the guest of the virtual
engine. What comes out is raw; figures are drawn from it by ``testbed.engines.mininet.figures``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from testbed.capture import Capture
from testbed.engines.mininet.controller import Controller
from testbed.engines.mininet.hosts import Hosts
from testbed.engines.mininet.net import emulated_network
from testbed.engines.mininet.plan import PORT, Plan, build
from testbed.experiment import load
from testbed.network import Network
from testbed.rundir import read_json, read_manifest, run_id

QUIET_S = 2.0  # a slow machine may pause for long
# what comes in at a switch: the first fragment has the port, the others only the offset
FILTER = f"inbound and udp and src net 10.0.0.0/16 and (dst port {PORT} or (ip[6:2] & 0x1fff != 0))"

Progress = Callable[[str, int, int], None]


def emulate(directory: Path, progress: Progress) -> None:
    """Run the experiment of a prepared run directory."""
    (experiment,) = load(directory / "experiment.toml")
    content = read_json(directory / "network.json", "this is not a prepared run directory")
    network = Network.from_json(content)
    plan = build(content, experiment.transport.mtu)
    (directory / "hosts").mkdir(exist_ok=True)
    run = run_id(read_manifest(directory))
    progress("network", 0, 1)
    with (
        emulated_network(plan) as net,
        Controller(
            directory / "network.json", directory, metric=experiment.transport.routing
        ) as controller,
    ):
        controller.wait_until_ready()
        progress("network", 1, 1)
        with (
            Hosts(experiment, network, run, directory, net.namespaces) as hosts,
            Capture(directory / "packets", FILTER) as capture,
        ):
            dropped_before = packets_dropped_by_the_kernel()
            figures = hosts.run(lambda done, of: progress("emulate", done, of), quiet_s(plan))
            dropped = packets_dropped_by_the_kernel() - dropped_before
    start = time.time_ns() - time.monotonic_ns() + hosts.start
    result = {
        "start_unix_ns": start,
        "hosts": figures,
        "warm_ups_missing": hosts.cold,
        "captured": capture.counts.captured,
        "capture_dropped": capture.counts.dropped,
        "kernel_dropped": dropped,
        "interfaces": {plan.indexes[name]: ends for name, ends in plan.arrivals.items()},
    }
    (directory / "emulation.json").write_text(json.dumps(result, indent=1) + "\n")


def quiet_s(plan: Plan) -> float:
    """How long nothing must move before a run is over: longer than the slowest link's delay."""
    slowest = max(link.delay_ns for link in plan.links) / 1e9
    return QUIET_S + 2 * slowest


def packets_dropped_by_the_kernel() -> int:
    """Packets that found no room between two interfaces, on the whole machine, since it started."""
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)
