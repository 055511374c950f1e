"""The emulated network: exact links, silence, Mininet's command line, and nothing left behind.

`emulated_network.py` does it all in three guests; the tests look at what it found.
"""

import json
import os
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.engines.mininet.kernel import machine, namespaces, netlink
from testbed.engines.mininet.kernel.netlink import End, Netlink
from testbed.engines.virtual.kernel import Kernel
from tests.emulation.conftest import module_in_guest

pytestmark = pytest.mark.emulation

Step = Callable[[str], Any]


@pytest.fixture(scope="module")
def boot(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Step]:
    """Do steps in a guest, and let the tests look at each."""

    def boot_and_do(*steps: str, virtual: bool = True) -> Step:
        said = module_in_guest(
            "emulated_network",
            *steps,
            results=tmp_path_factory.mktemp("results"),
            virtual=virtual,
            timeout_s=240,
        )
        try:
            found = json.loads(said.stdout)
        except json.JSONDecodeError:
            pytest.fail(f"{said.stdout}\n{said.stderr}")

        def step(name: str) -> Any:
            if isinstance(found[name], dict) and "error" in found[name]:
                pytest.fail(found[name]["error"])
            return found[name]

        return step

    return boot_and_do


@pytest.fixture(scope="module")
def at_work(boot: Callable[..., Step]) -> Step:
    return boot("timing", "queue", "loss", "chatter", "command_line", "shell", "errors")


@pytest.fixture(scope="module")
def ended(boot: Callable[..., Step]) -> Step:
    return boot("sigkill", "sigterm", "sigint", "failed", "unguarded", "two_at_once")


@pytest.fixture(scope="module")
def in_real_time(boot: Callable[..., Step]) -> Step:
    return boot("rough_timing", "netdev", "sigkill", virtual=False)


def test_a_link_is_exactly_store_and_forward(at_work: Step) -> None:
    for link in at_work("timing"):
        assert len(link["errors"]) == 95
        assert link["in_order"]
        errors = sorted(link["errors"])
        assert errors[0] >= 0, link
        # Each look at the guest's clock lets 1 ns pass, and at one instant there may be several.
        assert errors[len(errors) // 2] <= 50, link
        assert errors[-1] <= 2_500, link


def test_a_link_is_roughly_so_in_real_time(in_real_time: Step) -> None:
    errors = sorted(in_real_time("rough_timing"))
    assert errors[0] >= 0
    assert errors[len(errors) // 2] < 20_000_000


def test_a_full_queue_drops_those_that_come_last(at_work: Step) -> None:
    arrived, counted = at_work("queue")
    assert arrived == [0, 1, 2, 3, 4, 9]
    assert counted == {"lost": 0, "dropped": 5}


def test_a_link_loses_as_many_as_it_should(at_work: Step) -> None:
    arrived, counted = at_work("loss")
    assert arrived == pytest.approx(1400, abs=110)  # five standard deviations
    assert counted == {"lost": 2000 - arrived, "dropped": 0}


def test_nothing_is_captured_but_the_experiment(at_work: Step) -> None:
    found = at_work("chatter")
    assert found["silence"] == []
    assert found["counted"] == [[0, 0]] * 4
    # From h0 by s0 and s1 to s2: what comes in there.
    assert [interface for interface, _ in found["frames"]] == ["s0-eth1", "s1-eth2", "s2-eth2"]
    for _, text in found["frames"]:
        frame = bytes.fromhex(text)
        assert len(frame) == 474
        assert ones_sum(frame[14:34]) == 0xFFFF
        pseudo = frame[26:34] + struct.pack("!HH", 17, len(frame) - 34)
        assert ones_sum(pseudo + frame[34:]) == 0xFFFF


def ones_sum(data: bytes) -> int:
    """What RFC 1071 adds up; all ones if a checksum in it is right."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/sys/net/ipv6").exists(),
    reason="the guest has no IPv6; needs a kernel that has, and root",
)
@pytest.mark.parametrize("silenced", [False, True])
def test_ipv6_is_silent(silenced: bool) -> None:
    """On the machine's own kernel, in a namespace of its own."""
    with namespaces.returning():
        place = namespaces.enter_fresh()
        if silenced:
            machine.silence_ipv6()
        one = End("one", 10, "02:00:00:00:00:01", place, netlink.IFF_UP)
        two = End("two", 11, "02:00:00:00:00:02", place)
        everything = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        with Netlink() as kernel, everything:
            kernel.ask([netlink.veth(one, two, 1500), netlink.link_up(11)])
            os.close(place)
            time.sleep(2)
            everything.setblocking(False)
            if silenced:
                with pytest.raises(BlockingIOError):
                    everything.recv(2000)
            else:  # or the test would prove nothing
                assert everything.recv(2000)


def test_without_a_datapath_in_the_kernel_packets_still_pass(in_real_time: Step) -> None:
    """Not in virtual time: the threads that pass them on poll, and no time would pass."""
    errors = sorted(in_real_time("netdev"))
    assert errors[0] >= 0
    assert errors[len(errors) // 2] < 20_000_000


@pytest.mark.parametrize(
    "said",
    [
        "h0 h1 h2 s0 s1 s2",
        "s1 lo:  s1-eth1:h1-eth0 s1-eth2:s0-eth2 s1-eth3:s2-eth3",
        "s0-eth3<->s2-eth2 (OK OK)",
        "<Host h1: h1-eth0:10.0.0.2 pid=None>",
        "64 bytes from 10.0.0.3: icmp_seq=1 ttl=64 time=2.16 ms",  # two links, there and back
        "*** Results: 0% dropped (2/2 received)",
        "from h1",
        "3(s1-eth3): addr:02:01:00:02:00:03",
        "no-such-command: command not found",
        "delay 1ms rate 10Mbit",  # of a switch that was stopped and started
    ],
)
def test_the_command_line_of_mininet_works(at_work: Step, said: str) -> None:
    assert said in at_work("command_line")


def test_the_command_line_ends_with_exit(at_work: Step) -> None:
    assert "not reached" not in at_work("command_line")
    assert "Unknown command" not in at_work("command_line")


def test_the_shell_of_an_experiment_has_a_controller(at_work: Step) -> None:
    assert "hosts and switches: 2, links: 1" in at_work("shell")
    assert "1 packets transmitted, 1 received" in at_work("shell")


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("other queues", "the queue of s0-eth2 is not what was set"),
        ("netlink", "cannot bring up interface 9999: No such device"),
        ("bridge", "refused a change"),
        ("port", "could not open network device no-such-port"),
        ("port number", "s1-eth2 was to be port 2 of s1, and Open vSwitch made it 7"),
        ("no daemon", "does not answer: has its daemon died?"),
    ],
)
def test_what_goes_wrong_is_told(at_work: Step, what: str, sentence: str) -> None:
    assert sentence in at_work("errors")[what]


@pytest.mark.parametrize(
    ("how", "status"),
    [("sigkill", 9), ("sigterm", 15), ("sigint", 0)],
)
def test_nothing_outlives_a_network_whose_process_is_ended(
    ended: Step, how: str, status: int
) -> None:
    assert_gone(ended(how), status)


def test_nothing_outlives_it_in_real_time_either(in_real_time: Step) -> None:
    assert_gone(in_real_time("sigkill"), 9)


def assert_gone(found: dict[str, Any], status: int) -> None:
    # If nothing had appeared, nothing could be left.
    assert found["appeared"] == ["files", "interfaces", "namespaces", "processes"]
    assert found["status"] == status
    assert found["left"] == {}


@pytest.mark.parametrize("when", ["in use", "half made"])
def test_nothing_outlives_a_network_that_fails(ended: Step, when: str) -> None:
    assert ended("failed")[when] == {}


def test_nothing_outlives_a_network_whose_guard_was_killed(ended: Step) -> None:
    assert ended("unguarded") == {}


def test_two_networks_do_not_disturb_each_other(ended: Step) -> None:
    assert ended("two_at_once") == {"received": 2, "left": {}}
