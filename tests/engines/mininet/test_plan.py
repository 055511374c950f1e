"""The plan of an emulated network, and what is asked of the kernel: all that needs no root."""

import importlib.util
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from testbed.engines.mininet import plan as names
from testbed.engines.mininet.kernel import machine, namespaces, netem, netlink
from testbed.engines.mininet.plan import Plan, PlannedLink, build
from testbed.errors import UserError

#   0 — 1
#   | ╲ |
#   3   2
SQUARE: dict[str, Any] = {
    "nodes": [{"id": node, "x": 0.5} for node in range(4)],
    "links": [
        {
            "a": a,
            "b": b,
            "length": 1.0,
            "delay_ns": 1000 * a,
            "bandwidth_bps": 10**7,
            "queue_packets": 5,
            "loss": 0.25,
        }
        for a, b in ((0, 2), (0, 1), (1, 2), (0, 3))
    ],
    "overlay": None,
}


def test_addresses_are_as_documented() -> None:
    assert names.host_ip(0) == "10.0.0.1"
    assert names.host_ip(255) == "10.0.1.0"
    assert names.host_mac(0) == "02:00:00:00:00:01"
    assert names.host_mac(300) == "02:00:00:00:01:2d"
    assert (names.host_name(7), names.switch_name(7), names.dpid(7)) == ("h7", "s7", 8)
    assert (names.host_interface(7), names.switch_interface(7, 3)) == ("h7-eth0", "s7-eth3")


def test_no_two_things_share_an_address_or_a_long_name() -> None:
    nodes = range(names.MOST_NODES)
    ips = {names.host_ip(node) for node in nodes} | {names.GATEWAY_IP, names.MULTICAST_IP}
    macs = {names.host_mac(node) for node in nodes} | {names.GATEWAY_MAC}
    assert len(ips) == len(nodes) + 2
    assert len(macs) == len(nodes) + 1
    assert len(names.switch_interface(nodes[-1], 9999)) <= 15  # the kernel's limit


def test_ports_follow_the_neighbours_numbers() -> None:
    plan = build(SQUARE)
    assert plan.ports == [{1: 2, 2: 3, 3: 4}, {0: 2, 2: 3}, {0: 2, 1: 3}, {0: 2}]


def test_a_captured_packets_link_can_be_told() -> None:
    plan = build(SQUARE)
    assert plan.arrivals["s0-eth1"] == (None, 0)
    assert plan.arrivals["s0-eth3"] == (2, 0)
    assert plan.arrivals["s3-eth2"] == (0, 3)
    assert len(plan.arrivals) == 4 + 2 * 4
    assert sorted(plan.indexes) == sorted(plan.arrivals)
    assert len(set(plan.indexes.values())) == 12


def test_each_link_has_two_directions() -> None:
    directions = list(build(SQUARE).directions())
    link = PlannedLink(0, 2, 0, 10**7, 5, 0.25)
    assert directions[:2] == [("s0-eth3", link), ("s2-eth2", link)]
    assert len(directions) == 8


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"nodes": [{"id": 1}, {"id": 2}]}, "numbered from 0 to 1"),
        ({"nodes": [{}]}, "not complete"),
        ({"links": [{"a": 0, "b": 1}]}, "not complete"),
        ({"links": [{"a": 1, "b": 1, "delay_ns": 0, "bandwidth_bps": 1}]}, "join two nodes"),
        ({"links": [{"a": 0, "b": 9, "delay_ns": 0, "bandwidth_bps": 1}]}, "join two nodes"),
        ({"links": SQUARE["links"] + SQUARE["links"][:1]}, "no two links"),
        ({"nodes": [{"id": node} for node in range(70_000)]}, "too many"),
    ],
)
def test_what_cannot_be_built_is_told(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        build(SQUARE | change)


def test_a_limited_queue_has_room_for_those_that_wait_and_the_one_that_is_sent() -> None:
    outer, inner = netem.queues(PlannedLink(0, 1, 500, 10**7, queue_packets=7)).values()
    assert (outer.delay_ns, outer.rate) == (500, 0)
    assert (inner.delay_ns, inner.rate, inner.limit) == (0, 1_250_000, 8)


def test_attributes_are_padded_and_come_back() -> None:
    data = netlink.attribute(1, "abc") + netlink.attribute(2, 7) + netlink.attribute(3, b"12345")
    assert len(data) == 8 + 8 + 12
    assert netlink.attributes(data) == {1: b"abc\0", 2: struct.pack("=I", 7), 3: b"12345"}


def test_without_root_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root: run with sudo"):
        machine.check()


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_without_mininet_the_way_to_it_is_told(
    as_root: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="apt-get install mininet"):
        machine.check()


def test_without_open_vswitch_the_way_to_it_is_told(
    as_root: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install openvswitch-switch"):
        machine.check()


def test_without_netem_the_way_out_is_told(as_root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, requests: object) -> None:
        raise netlink.NetlinkError(2, "cannot set the queue of lo: No such file or directory")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "there")
    monkeypatch.setattr(namespaces, "enter", lambda namespace: None)
    monkeypatch.setattr(namespaces, "enter_fresh", namespaces.current)
    monkeypatch.setattr(netlink.Netlink, "ask", refuse)
    with pytest.raises(UserError, match=r"no netem .*choose the engine virtual"):
        machine.check()


def test_the_plan_needs_no_links() -> None:
    assert Plan(1, ()).arrivals == {"s0-eth1": (None, 0)}
