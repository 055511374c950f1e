"""The controller with a real Open vSwitch, in a guest: one boot for each library."""

import json
from importlib.util import find_spec
from itertools import permutations
from typing import Any

import pytest

from testbed.engines import needs
from testbed.engines.virtual.kernel import Kernel
from tests.emulation.conftest import module_in_guest

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(not needs.openvswitch().ok, reason="no Open vSwitch here"),
]

KINDS = [f"{kind} {how}" for kind in ("unicast", "multicast") for how in ("whole", "fragmented")]
ALL = sorted([a, b] for a, b in permutations(range(5), 2))
"""Everybody to everybody else, once."""
WITHOUT_H4 = [[a, b] for a, b in ALL if 4 not in (a, b)]


@pytest.fixture(scope="module", params=["ryu", "os-ken"])
def found(
    request: pytest.FixtureRequest, kernel: Kernel, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What happened in the guest, step by step; see switched_network.py."""
    library = request.param
    if find_spec(library.replace("-", "_")) is None:
        pytest.skip(f"no {library} here")
    results = tmp_path_factory.mktemp(library)
    words = ("switched_network", library, results)
    said = module_in_guest(*words, results=results, timeout_s=300)
    assert said.result.returncode == 0, said.stderr
    content: dict[str, Any] = json.loads((results / "found.json").read_text())
    return content


def test_it_is_ready_only_when_all_switches_are_connected(found: dict[str, Any]) -> None:
    assert "these switches have no rules yet: s4:" in found["one missing"]
    assert found["told in place"] == [0, 1, 2, 3]


def test_an_unknown_switch_is_ignored_and_nothing_else_is_amiss(found: dict[str, Any]) -> None:
    (line,) = found["log"].splitlines()
    assert "the unknown number 99 is ignored" in line


def test_every_datagram_arrives_once_whole_or_in_fragments(found: dict[str, Any]) -> None:
    assert found["arrived"] == dict.fromkeys(KINDS, ALL)
    assert found["udp errors"] == 0
    assert found["fragments"] == "normal"


def test_nothing_else_is_forwarded(found: dict[str, Any]) -> None:
    assert found["junk seen"] == []
    for node in range(5):
        flows = found["tables"][f"s{node} flows"]
        assert len(flows) == 5 + 5 + 1
        assert sum("priority=0 actions=drop" in flow for flow in flows) == 1
        assert not any("CONTROLLER" in flow for flow in flows)


def test_a_link_that_goes_down_is_gone_round(found: dict[str, Any]) -> None:
    (reroute,) = found["cut 0-1"]
    assert reroute["down"] == [[0, 1]]
    assert reroute["rules"] > 0
    assert found["arrived without 0-1"] == dict.fromkeys(KINDS, ALL)
    # s0's port 2 leads to s1, its port 3 to s3.
    uses = [line for line in found["tables"]["s0 flows"] if "output:2" in line]
    assert uses
    without = found["tables without 0-1"]
    assert not any("output:2" in line for line in without["s0 flows"] + without["s0 groups"])


def test_who_cannot_be_reached_has_no_rules(found: dict[str, Any]) -> None:
    (reroute,) = found["cut 1-4"]
    assert reroute["down"] == [[0, 1], [1, 4]]
    assert found["arrived without 0-1, 1-4"] == dict.fromkeys(KINDS, WITHOUT_H4)
    for node in range(4):
        assert any("10.0.0.5" in line for line in found["tables"][f"s{node} flows"])
        without = found["tables without 0-1, 1-4"][f"s{node} flows"]
        assert without
        assert not any("10.0.0.5" in line for line in without)


def test_all_is_as_before_when_the_links_are_up_again(found: dict[str, Any]) -> None:
    assert [line["down"] for line in found["healed 1-4"]] == [[[0, 1]]]
    assert [line["down"] for line in found["healed 0-1"]] == [[]]
    assert found["tables at the end"] == found["tables"]
    assert found["arrived at the end"] == dict.fromkeys(KINDS, ALL)


def test_an_idle_controller_lets_time_jump(found: dict[str, Any]) -> None:
    # Eventlet wakes once; connections that wake every 5 s would do so 60 times.
    assert found["wakings in 60 s"] <= 5


def test_it_stops_at_once(found: dict[str, Any]) -> None:
    assert found["stopped in"] < 0.1
