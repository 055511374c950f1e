"""Links keep their order: every port has one CPU that receives, and overtakings are counted."""

import logging
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from testbed.check.fidelity import judge, replay
from testbed.engines.mininet.kernel import steering
from testbed.packets.pcap import Packets

INTERFACES = {10: (None, 0), 11: (0, 1)}
IN_ORDER = [(0, 10, 1), (1, 10, 2), (2, 10, 3), (10, 11, 1), (11, 11, 2), (12, 11, 3)]


def overtaken(arrivals: list[tuple[int, int, int]], destinations: dict[int, int]) -> int:
    """Of packets that come in at (time in ms, interface, number), over one link of 10 ms."""
    graph: nx.Graph[int] = nx.path_graph(2)
    graph.edges[0, 1].update(delay_ns=10_000_000, bandwidth_bps=10**12)
    rows = [
        (t * 1_000_000, interface, 100, 1, destinations.get(number, 2), number, 0)
        for t, interface, number in arrivals
    ]
    _, _, count = replay(Packets(*np.array(rows, np.int64).T), INTERFACES, graph)
    return count


def test_nobody_is_overtaken_on_a_fifo_link() -> None:
    assert overtaken(IN_ORDER, {}) == 0


def test_every_packet_that_comes_after_a_later_one_was_overtaken() -> None:
    assert overtaken([*IN_ORDER[:3], (10, 11, 3), (11, 11, 1), (12, 11, 2)], {}) == 2


def test_packets_to_different_hosts_need_no_order() -> None:
    assert overtaken([*IN_ORDER[:3], (10, 11, 3), (11, 11, 1), (12, 11, 2)], {3: 7}) == 0


def test_one_packet_overtaken_makes_a_run_suspect_and_is_told() -> None:
    none = np.array([0, 0], np.int64)
    assert judge(none, dropped=0).verdict == "exact"
    fidelity = judge(none, dropped=0, overtaken=1)
    assert fidelity.verdict == "suspect"
    assert "1 overtaken on a link" in str(fidelity)


def test_cpus_are_written_as_the_kernel_reads_them() -> None:
    assert [steering.mask(cpu) for cpu in (0, 5, 31)] == ["1", "20", "80000000"]
    assert steering.mask(32) == "1,00000000"
    assert steering.mask(70) == "40,00000000,00000000"


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or os.cpu_count() == 1, reason="takes root and several CPUs"
)

IN_A_NAMESPACE = """
import os
from testbed.engines.mininet.kernel import namespaces, netlink, steering
home = namespaces.enter_fresh()
ends = [netlink.End(f"port{i}", 100 + i, f"02:00:00:00:00:0{i}", home) for i in range(4)]
with netlink.Netlink() as kernel:
    kernel.ask([netlink.veth(ends[i], ends[i + 1], 1500) for i in (0, 2)])
mounts = open("/proc/self/mounts").read()
steering.assign([end.name for end in ends])
with steering._sysfs() as root:
    for end in ends:
        path = f"class/net/{end.name}/queues/rx-0/rps_cpus"
        with open(os.open(path, os.O_RDONLY, dir_fd=root)) as file:
            print(int(file.read().replace(",", ""), 16))
assert open("/proc/self/mounts").read() == mounts
"""


@needs_root
def test_ports_share_the_cpus_and_nothing_stays_mounted() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_NAMESPACE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    masks = [int(line) for line in done.stdout.split()]
    cpus = sorted(os.sched_getaffinity(0))
    assert masks == [1 << cpus[port % len(cpus)] for port in range(4)]


@needs_root
def test_a_kernel_that_cannot_be_told_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        steering.assign(["no-such-port"])
    assert "may overtake" in caplog.text
