"""Runs in a guest: brings emulated networks up, looks at them, and takes or kills them down.

Prints one JSON object: what was found in each step that was asked for, or what went wrong in it. The
tests look at that. The rules of the switches are installed by ovs-ofctl, in a controller's stead.
"""

import contextlib
import io
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from testbed.cli import main as testbed
from testbed.engines.mininet.kernel import machine, netem, netlink
from testbed.engines.mininet.kernel.netlink import Netlink
from testbed.engines.mininet.shell import interact
from testbed.engines.mininet.switches import openvswitch
from testbed.errors import UserError
from tests.emulation import end_steps, link_steps
from tests.emulation.rings import network, ring, run


@contextlib.contextmanager
def heard() -> Iterator[io.StringIO]:
    """What Mininet says, which it does by its logger."""
    handler = logging.getLogger("mininet").handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(text := io.StringIO())
    try:
        yield text
    finally:
        handler.setStream(before)


def command_line() -> str:
    """What Mininet's command line says."""
    commands = (
        "nodes\nnet\nlinks\ndump\nh0 ping -c 1 h2\npingpair\npy h1.cmd('echo', 'from h1')\n"
        "link s0 s1 down\nlinks\nlink s0 s1 up\nswitch s1 stop\nswitch s1 start\ndpctl show\n"
        "h0 no-such-command\nexit\nh0 echo not reached\n"
    )
    with network(ring(3)) as net, heard() as text:
        interact(net, io.StringIO(commands))
        text.write(run("tc", "qdisc", "show", "dev", "s1-eth2"))
        return text.getvalue()


def shell() -> str:
    """What `testbed shell` says, with its own controller."""
    file = Path("/tmp/pair.toml")
    file.write_text(
        'name = "pair"\nprotocol = {name = "timestamp"}\n'
        'topology = {model = "line", nodes = 2}\nlinks = {delay_ms = 1}\n'
        "workload = {model = 'poisson', senders = 1}\n"
    )
    typed = io.StringIO("h0 ping -c 1 h1\nlink s0 s1 down\n")
    with patch.object(sys, "stdin", typed), heard() as text, contextlib.redirect_stdout(text):
        assert testbed(["shell", str(file)]) == 0
        return text.getvalue()


def errors() -> dict[str, str]:
    """What is said when something does not work."""
    found: dict[str, str] = {}
    genuine = netem.requests

    def slower(index: int, wanted: dict[int, netem.Netem], name: str) -> Iterator[netlink.Request]:
        return genuine(index, {handle: netem.Netem(delay_ns=7) for handle in wanted}, name)

    others = patch.object(netem, "requests", slower)
    with others, said(found, "other queues"), network(ring(2)):
        pass
    with said(found, "netlink"), Netlink() as kernel:  # the second is refused, and the last not
        kernel.ask([netlink.link_up(1), netlink.link_up(9999), netlink.link_up(1)])
    with network(ring(2)):
        with said(found, "bridge"):
            openvswitch.add_bridges([openvswitch.Bridge("s0", 1, {})], openvswitch.Settings(None))
        with said(found, "port"):
            bridge = openvswitch.Bridge("s9", 10, {"no-such-port": 1})
            openvswitch.add_bridges([bridge], openvswitch.Settings(None))
    numbers = openvswitch.port_numbers
    renumbered = patch.object(openvswitch, "port_numbers", lambda: {**numbers(), "s1-eth2": 7})
    with renumbered, said(found, "port number"), network(ring(2)):
        pass
    with said(found, "no daemon"):
        os.environ["OVS_LOGDIR"] = os.environ["OVS_RUNDIR"] = "/nowhere"
        openvswitch.add_bridges([], openvswitch.Settings(None))
    return found


@contextlib.contextmanager
def said(found: dict[str, str], what: str) -> Iterator[None]:
    try:
        yield
    except (UserError, netlink.NetlinkError) as error:
        found[what] = str(error)


def netdev() -> list[int]:
    """Errors of a link where the kernel has no Open vSwitch, and packets pass through a process."""
    with patch.object(machine, "datapath", lambda: "netdev"):
        return link_steps.hop_errors(ring(2), [[74], [474], [1514]])[0]


STEPS: dict[str, Callable[[], Any]] = {
    "sigkill": lambda: end_steps.killed(signal.SIGKILL),
    "sigterm": lambda: end_steps.killed(signal.SIGTERM),
    "sigint": lambda: end_steps.killed(signal.SIGINT),
    **{step.__name__: step for step in (command_line, shell, errors, netdev)},
    **{step.__name__: step for step in (*link_steps.STEPS, *end_steps.STEPS)},
}


def main() -> None:
    found = {}
    for step in sys.argv[1:]:
        try:
            found[step] = STEPS[step]()
        except Exception:  # of interest to the tests of this step only
            found[step] = {"error": traceback.format_exc()}
        print(step, "done", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
