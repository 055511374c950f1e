"""The Open vSwitch of a run: daemons of its own, in its own namespace and directory.

The machine's Open vSwitch, if it has one, is neither needed nor touched, and two runs cannot meet. All
bridges and ports are made by one transaction. Open vSwitch would remove the queues of an interface
that becomes its port, unless the port's quality of service is "linux-noop": leave it alone.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.mininet.switches import daemons
from testbed.errors import UserError

_VARIABLES = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR")
_NEVER_MS = 1_000_000_000


@dataclass(frozen=True)
class Settings:
    """What all bridges of a run share."""

    controller: str | None  # the target of the OpenFlow controller, such as tcp:127.0.0.1:6653
    # The kernel's; "netdev" is Open vSwitch's own, for a kernel that has none.
    datapath: str = "system"


@contextmanager
def running(directory: Path) -> Iterator[None]:
    """Run the daemons in the namespace that this thread is in; Open vSwitch's programs find them."""
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, str(directory)))
    try:
        with daemons.open_vswitch(directory):
            yield
    except daemons.OpenVSwitchError as error:
        raise UserError(f"Open vSwitch does not start: {error}") from None
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def vsctl(arguments: Sequence[str]) -> str:
    """Make one transaction, wait until it is carried out, and return what ovs-vsctl says."""
    done = subprocess.run(
        ["ovs-vsctl", "--timeout=600", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode or done.stderr:  # of a port that cannot be made it tells only so
        raise UserError(f"ovs-vsctl failed: {' '.join(done.stderr.split()) or done.returncode}")
    return done.stdout


def port_numbers() -> dict[str, int]:
    """The OpenFlow port number of each interface, by Open vSwitch's word; -1 if it failed."""
    query = {"op": "select", "table": "Interface", "where": [], "columns": ["name", "ofport"]}
    database = Path(os.environ["OVS_RUNDIR"]) / "db.sock"
    try:
        (found,) = daemons.call_daemon(database, "transact", ["Open_vSwitch", query])
    except daemons.OpenVSwitchError:
        raise UserError("Open vSwitch's database does not answer: has its daemon died?") from None
    return {row["name"]: row["ofport"] for row in found["rows"] if isinstance(row["ofport"], int)}


def datapath_statistics() -> str:
    """What Open vSwitch counted, as ``ovs-appctl dpctl/show`` prints it."""
    return str(daemons.call_switch(Path(os.environ["OVS_RUNDIR"]), "dpctl/show", []))


def quiet_arguments() -> list[str]:
    """Settings of the daemon: no statistics of ports, no forgetting of flows."""
    # Each would cost time again and again, with hundreds of ports.
    settings = ("stats-update-interval", "max-idle")
    arguments = [f"other_config:{setting}={_NEVER_MS}" for setting in settings]
    return ["--", "set", "Open_vSwitch", ".", *arguments]


def qos_arguments() -> list[str]:
    """A quality of service that leaves queues alone; ``bridge_arguments`` refers to it."""
    return ["--", "--id=@queues", "create", "QoS", "type=linux-noop"]


def bridge_arguments(
    name: str, dpid: int, ports: Mapping[str, int], settings: Settings
) -> list[str]:
    """Make a bridge with its ports, where and how OpenFlow is to see them."""
    arguments = ["--", "add-br", name, "--", "set", "bridge", name]
    arguments += [
        f"datapath_type={settings.datapath}",
        f"other_config:datapath-id={dpid:016x}",
        "other_config:disable-in-band=true",
        "fail_mode=secure",
        "protocols=OpenFlow13",
    ]
    if settings.controller:
        arguments += ["--", f"--id=@controller-{name}", "create", "Controller"]
        arguments += [f'target="{settings.controller}"', "max_backoff=1000", "inactivity_probe=0"]
        arguments += ["--", "set", "bridge", name, f"controller=@controller-{name}"]
    for interface, port in ports.items():
        arguments += ["--", "add-port", name, interface]
        arguments += ["--", "set", "interface", interface, f"ofport_request={port}"]
        arguments += ["--", "set", "port", interface, "qos=@queues"]
    return arguments
