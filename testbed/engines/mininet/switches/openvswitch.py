"""The Open vSwitch of a run: daemons of its own, in its own namespace and directory.

The machine's Open vSwitch, if it has one, is neither needed nor touched, and two runs cannot meet. All
bridges and ports are made by one transaction. Open vSwitch would remove the queues of an interface
that becomes its port, unless the port's quality of service is "linux-noop": leave it alone.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.engines.mininet.switches import daemons
from testbed.errors import UserError

_VARIABLES = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR")
_PATIENCE_MS = 600_000
_CONFIGURATION: dict[str, Any] = {"table": "Open_vSwitch", "where": []}  # its only row

Operation = dict[str, Any]


@dataclass(frozen=True)
class Bridge:
    """A bridge, its OpenFlow datapath number, and the port number of each of its interfaces."""

    name: str
    dpid: int
    ports: Mapping[str, int]


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


def add_bridges(bridges: Sequence[Bridge], settings: Settings) -> None:
    """Make bridges with their ports in one transaction; return when Open vSwitch has made them.

    ``ovs-vsctl`` searches all ports for each one, and takes eight times as long for twice as many;
    and its arguments could name some 8,000 at most.
    """
    operations = [_insert("QoS", ["named-uuid", "queues"], {"type": "linux-noop"})]
    for bridge in bridges:
        operations += _insert_bridge(bridge, settings)
    made = ["set", [_named("b", bridge.name) for bridge in bridges]]
    mutations = [["bridges", "insert", made], ["next_cfg", "+=", 1]]
    operations.append({"op": "mutate", "mutations": mutations, **_CONFIGURATION})
    operations.append({"op": "select", "columns": ["next_cfg"], **_CONFIGURATION})
    number = _transact(*operations)[-1]["rows"][0]["next_cfg"]
    until = {"columns": ["cur_cfg"], "until": "==", "rows": [{"cur_cfg": number}]}
    _transact({"op": "wait", "timeout": _PATIENCE_MS, **until, **_CONFIGURATION})
    failed = ["error", "!=", ["set", []]]
    query = {"op": "select", "table": "Interface", "where": [failed], "columns": ["error"]}
    for row in _transact(query)[0]["rows"]:
        raise UserError(f"Open vSwitch cannot make a port: {row['error']}")


def port_numbers() -> dict[str, int]:
    """The OpenFlow port number of each interface, by Open vSwitch's word; -1 if it failed."""
    query = {"op": "select", "table": "Interface", "where": [], "columns": ["name", "ofport"]}
    rows = _transact(query)[0]["rows"]
    return {row["name"]: row["ofport"] for row in rows if isinstance(row["ofport"], int)}


def datapath_statistics() -> str:
    """What Open vSwitch counted, as ``ovs-appctl dpctl/show`` prints it."""
    return str(daemons.call_switch(Path(os.environ["OVS_RUNDIR"]), "dpctl/show", []))


def _transact(*operations: Operation) -> list[dict[str, Any]]:
    """Change or read the database (RFC 7047, section 4.1.3); the result of each operation."""
    database = Path(os.environ["OVS_RUNDIR"]) / "db.sock"
    try:
        results = daemons.call_daemon(database, "transact", ["Open_vSwitch", *operations])
    except (daemons.OpenVSwitchError, OSError):
        raise UserError("Open vSwitch's database does not answer: has its daemon died?") from None
    for result in results:
        if result and "error" in result:
            details = result.get("details", result["error"])
            raise UserError(f"Open vSwitch's database refused a change: {details}")
    return list(results)


def _insert_bridge(bridge: Bridge, settings: Settings) -> Iterator[Operation]:
    """The rows of a bridge and its ports, by which OpenFlow sees it as it shall."""
    name = bridge.name
    ports: dict[str, dict[str, Any]] = {name: {"type": "internal"}}
    ports |= {port: {"ofport_request": number} for port, number in bridge.ports.items()}
    for port, interface in ports.items():
        yield _insert("Interface", _named("i", port), {"name": port, **interface})
        queues = {} if port == name else {"qos": ["named-uuid", "queues"]}
        made = {"name": port, "interfaces": _named("i", port), **queues}
        yield _insert("Port", _named("p", port), made)
    config = [["datapath-id", f"{bridge.dpid:016x}"], ["disable-in-band", "true"]]
    row: dict[str, Any] = {
        "name": name,
        "datapath_type": settings.datapath,
        "other_config": ["map", config],
        "fail_mode": "secure",
        "protocols": "OpenFlow13",
        "ports": ["set", [_named("p", port) for port in ports]],
    }
    if settings.controller:
        target = {"target": settings.controller, "max_backoff": 1000, "inactivity_probe": 0}
        yield _insert("Controller", _named("c", name), target)
        row["controller"] = _named("c", name)
    yield _insert("Bridge", _named("b", name), row)


def _insert(table: str, named: list[str], row: dict[str, Any]) -> Operation:
    return {"op": "insert", "table": table, "uuid-name": named[1], "row": row}


def _named(kind: str, name: str) -> list[str]:
    """How operations of one transaction refer to a row that another of them inserts."""
    return ["named-uuid", f"{kind}_{name.replace('-', '_')}"]
