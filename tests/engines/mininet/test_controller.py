"""The controller's process, with pretended switches: no privilege and no Open vSwitch needed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from testbed.engines.mininet.controller.controller import Controller, ControllerError
from testbed.engines.mininet.controller.process import REROUTES, Library
from tests.engines.mininet.switches import FLOW_MOD, GROUP_MOD, PretendedSwitch

LISTEN = "0A"  # as /proc/net/tcp writes a state
LIBRARIES = [
    pytest.param(
        name, marks=pytest.mark.skipif(find_spec(package) is None, reason=f"no {name} here")
    )
    for name, package in (("ryu", "ryu"), ("os-ken", "os_ken"))
]
# A triangle. Ports 2 and 3 of each switch are its links, in the order of the neighbours.
TRIANGLE = {
    "nodes": [{"id": node} for node in range(3)],
    "links": [
        {"a": a, "b": b, "delay_ns": 1, "bandwidth_bps": 1} for a, b in ((0, 1), (0, 2), (1, 2))
    ],
}
FLOW_MOD_FAILED, TABLE_FULL = 5, 1


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    chosen: Library = request.param
    return chosen


@pytest.fixture
def network(tmp_path: Path) -> Path:
    file = tmp_path / "network.json"
    file.write_text(json.dumps(TRIANGLE))
    return file


@contextmanager
def started(network: Path, library: Library = "ryu", port: int = 0) -> Iterator[Controller]:
    with Controller(network, network.parent, library=library, port=port) as controller:
        yield controller


def eventually(condition: Any, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def reroutes(network: Path) -> list[dict[str, Any]]:
    log = network.parent / REROUTES
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_ready_is_told_when_the_last_switch_has_confirmed(library: Library, network: Path) -> None:
    with started(network, library) as controller, ExitStack() as switches:
        for node in (2, 0):
            switches.enter_context(PretendedSwitch(controller.port, node + 1, 3))
        late = PretendedSwitch(controller.port, 2, 3)
        late.answers.clear()
        switches.enter_context(late)
        eventually(lambda: FLOW_MOD in late.told and GROUP_MOD in late.told)
        with pytest.raises(ControllerError, match=r"these switches have no rules yet: s1:"):
            controller.wait_until_ready(0.5)
        assert controller.in_place == {0, 2}
        late.answers.set()
        controller.wait_until_ready(20)
        # 3 hosts, 3 sources, nothing else, and a clean slate: all forgotten, the rest dropped.
        assert late.told.count(FLOW_MOD) == 3 + 3 + 2
        assert late.told.count(GROUP_MOD) == 3 + 1
    assert reroutes(network) == []


@pytest.mark.parametrize("broken", ["ryu", "os_ken"])
def test_the_library_that_runs_is_chosen(
    broken: str, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other: Library = "ryu" if broken == "os_ken" else "os-ken"
    monkeypatch.setitem(sys.modules, broken, None)  # importing it fails
    with started(network, "auto") as controller:
        assert controller.library == other
    named: Library = "ryu" if broken == "ryu" else "os-ken"
    with pytest.raises(ControllerError, match=rf"{named} cannot be used"), started(network, named):
        pass


def test_links_that_are_down_at_the_start_are_waited_for(library: Library, network: Path) -> None:
    with started(network, library) as controller, ExitStack() as stack:
        switches = [
            stack.enter_context(PretendedSwitch(controller.port, node + 1, 3, down=down))
            for node, down in enumerate([{2}, set(), set()])
        ]
        with pytest.raises(ControllerError, match="these links are down: s0–s1:"):
            controller.wait_until_ready(3)
        assert controller.in_place == {0, 1, 2}
        switches[0].set_port(2, up=True)
        controller.wait_until_ready(20)
        assert [line["down"] for line in reroutes(network)] == [[[0, 1]], []]


def test_a_switch_is_told_only_what_changes(library: Library, network: Path) -> None:
    with started(network, library) as controller, ExitStack() as stack:
        switches = [
            stack.enter_context(PretendedSwitch(controller.port, node + 1, 3)) for node in range(3)
        ]
        controller.wait_until_ready(20)
        before = [len(switch.told) for switch in switches]
        switches[0].set_port(2, up=False)
        switches[1].set_port(2, up=False)  # the other end of the same link
        eventually(lambda: len(reroutes(network)) == 1)
        # Without 0–1, s0 and s1 send to each other by s2, which copies on what both multicast.
        told = [switch.told[count:] for switch, count in zip(switches, before, strict=True)]
        assert [(kinds.count(FLOW_MOD), kinds.count(GROUP_MOD)) for kinds in told] == [
            (1, 1),
            (1, 1),
            (0, 2),
        ]
        assert reroutes(network)[0]["rules"] == 6
        assert reroutes(network)[0]["time_ns"] <= reroutes(network)[0]["in_place_ns"]
        controller.check()
        assert controller.down == [(0, 1)]


def test_a_switch_that_comes_back_gets_all_its_rules(library: Library, network: Path) -> None:
    with started(network, library) as controller, ExitStack() as switches:
        for node in (1, 2):
            switches.enter_context(PretendedSwitch(controller.port, node + 1, 3))
        with PretendedSwitch(controller.port, 1, 3) as first:
            controller.wait_until_ready(20)
        with PretendedSwitch(controller.port, 1, 3) as second:
            eventually(lambda: len(second.told) == len(first.told))
            assert sorted(second.told) == sorted(first.told)
        controller.check()
    assert "the connection of s0 has ended" in controller.log.read_text()


def test_a_refusal_of_a_switch_is_the_end(library: Library, network: Path) -> None:
    with started(network, library) as controller:
        switch = PretendedSwitch(controller.port, 1, 3)
        switch.refuse = (FLOW_MOD_FAILED, TABLE_FULL)
        with switch, pytest.raises(ControllerError, match=r"s0 refused OFPT_FLOW_MOD.*TABLE_FULL"):
            controller.wait_until_ready(20)
        with pytest.raises(ControllerError, match="has ended"):
            controller.wait_until_ready(20)


def test_an_unknown_switch_is_ignored(library: Library, network: Path) -> None:
    with started(network, library) as controller, PretendedSwitch(controller.port, 77, 3) as switch:
        eventually(lambda: "unknown number 77" in controller.log.read_text())
        with pytest.raises(ControllerError, match="no rules yet: s0, s1, s2"):
            controller.wait_until_ready(0.2)
        assert FLOW_MOD not in switch.told


def test_a_port_in_use_is_named_and_logged(library: Library, network: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = probe.getsockname()[1]
    # Both ask for it by number: that is when the library would share it.
    with (
        started(network, library, port=free) as first,
        pytest.raises(ControllerError, match=rf"port {free} is in use on 127\.0\.0\.1"),
        started(network, library, port=free),
    ):
        pass
    log = first.log.read_text()
    assert f"controller: port {free} is in use" in log
    assert "Traceback" not in log


def test_only_this_machine_can_connect(network: Path) -> None:
    with started(network) as controller:
        listening = Path(f"/proc/{controller.pid}/net/tcp").read_text().splitlines()
        rows = [line.split()[1:4] for line in listening]
        local = [local for local, _, state in rows if state == LISTEN]
        ours = [address for address in local if address.endswith(f":{controller.port:04X}")]
        assert ours == [f"0100007F:{controller.port:04X}"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "network.json cannot be read: No such file"),
        ("{", "network.json is not JSON"),
        ("[]", "network.json is not complete"),
        ('{"nodes": [{"id": 1}], "links": []}', "nodes must be numbered from 0"),
    ],
)
def test_a_network_that_cannot_be_read(network: Path, content: str | None, sentence: str) -> None:
    network.unlink() if content is None else network.write_text(content)
    with pytest.raises(ControllerError, match=sentence), started(network):
        pass


def test_a_library_that_is_not_there(
    library: Library, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library.replace("-", "_"), None)
    with (
        pytest.raises(ControllerError, match=rf"{library} cannot be used .*: run scripts/setup"),
        started(network, library),
    ):
        pass


def test_a_bug_of_the_controller_ends_it(
    library: Library, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("testbed.engines.mininet.controller.rules.change", fail)
    with started(network, library) as controller:
        switch = PretendedSwitch(controller.port, 1, 3, down={2})
        with switch, pytest.raises(ControllerError, match="the controller has a bug"):
            controller.wait_until_ready(20)
    assert "on purpose" in controller.log.read_text()


def test_it_ends_with_the_block_and_leaves_nothing(library: Library, network: Path) -> None:
    files = len(os.listdir("/proc/self/fd"))
    with started(network, library) as controller:
        assert alive(controller.pid)
        start = time.monotonic()
    assert time.monotonic() - start < 2
    assert not Path(f"/proc/{controller.pid}").exists()
    assert len(os.listdir("/proc/self/fd")) == files
    assert {file.name for file in network.parent.iterdir()} == {"network.json", "controller.log"}


def test_it_keeps_none_of_its_owners_files(library: Library, network: Path) -> None:
    with network.open() as file, started(network, library) as controller:
        descriptors = Path(f"/proc/{controller.pid}/fd").iterdir()
        assert str(network) not in {os.readlink(descriptor) for descriptor in descriptors}
        assert os.readlink(f"/proc/self/fd/{file.fileno()}") == str(network)


OWNER = """
import sys, time
from pathlib import Path
from testbed.engines.mininet.controller.controller import Controller
network, library = Path(sys.argv[1]), sys.argv[2]
with Controller(network, network.parent, library=library, port=0) as controller:
    print(controller.pid, flush=True)
    time.sleep(60)
"""


def test_it_ends_when_its_owner_is_killed(library: Library, network: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(network), library],
        stdout=subprocess.PIPE,
        env={**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert alive(pid)
        owner.send_signal(signal.SIGKILL)
    eventually(lambda: not alive(pid))
    assert list(home.iterdir()) == []
