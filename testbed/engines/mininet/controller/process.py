"""What the controller's process does: it installs the rules of a network into its switches.

It tells what happens on its standard output, a JSON object a line with one fact in it:

    {"library": "ryu"}           which it uses
    {"listening": 6653}          the port; switches may connect
    {"in_place": 3}              switch s3 has all of its rules
    {"down": [[0, 1], [2, 3]]}   the links that are down, when that has changed
    {"ready": 768}               all switches have all of their rules, and no link is down; once
    {"failed": "…"}              why it ends, with status 2

Its standard error is for people. ``controller.py`` starts it and listens to it.
"""

import ctypes
import errno
import json
import logging
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from testbed.engines.mininet.plan import Plan, build
from testbed.engines.mininet.ways import Ways
from testbed.errors import UserError, installing
from testbed.topologies.routing import Metric

Library = Literal["auto", "ryu", "os-ken"]  # "auto": Ryu where it runs, else os-ken

ADDRESS = "127.0.0.1"
# In the run directory: a line for each time that the rules were changed.
REROUTES = "reroutes.jsonl"

_BACKLOG = 1024  # all switches may knock at once
_PR_SET_PDEATHSIG = 1
_STDOUT = 1


class Options(NamedTuple):
    """Which network to control, and how."""

    network: Path  # the network.json of a run
    directory: Path  # where REROUTES is written
    library: Library
    metric: Metric
    port: int  # where to listen on ADDRESS; 0 is any that is free
    ways: Ways | None = None  # what the rules are for; None: for packets from anybody to anybody


def main(options: Options, parent: int) -> int:
    """Control a network as long as the parent lives; return the exit status."""
    # Other threads may wait for switches, so there is no other way to end; nothing is unwritten.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    _die_with(parent)
    # Ctrl-C reaches all processes of a terminal; who started this one ends it in its turn.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(message)s", force=True)
    try:
        _serve(_read(options.network), options)
    except UserError as error:
        print(f"controller: {error}", file=sys.stderr)
        report(failed=str(error))
        return 2


def report(**fact: Any) -> None:
    """Tell who started this process one fact, at once."""
    os.write(_STDOUT, json.dumps(fact).encode() + b"\n")


def _serve(plan: Plan, options: Options) -> NoReturn:
    report(library=_import_library(options.library))
    from testbed.engines.mininet.controller import openflow
    from testbed.engines.mininet.controller.router import Router

    listener = _listen(openflow.hub, options.port)
    reroutes = options.directory / REROUTES
    openflow.start(Router, plan, options.ways, options.metric, reroutes, report)
    report(listening=listener.getsockname()[1])
    while True:
        openflow.hub.spawn(openflow.serve_switch, *listener.accept())


def _import_library(asked: Library) -> str:
    """Import the library, or the first that can be; its name."""
    names = ("ryu", "os-ken") if asked == "auto" else (asked,)
    for name in names:
        os.environ["TESTBED_OPENFLOW"] = name  # see openflow.py
        try:
            # Not before: which library is imported is known only now, and either takes its time.
            import_module("testbed.engines.mininet.controller.openflow")
        except Exception as error:  # a library that is too old for this Python may raise anything
            reason = error
        else:
            return name
    remedy = installing("emulation")
    raise UserError(f"{names[-1]} cannot be used ({reason}): {remedy}") from reason


def _listen(hub: Any, port: int) -> Any:
    try:
        # The library would share the port with whoever has it already, and each of the two
        # controllers get some of the switches.
        return hub.listen((ADDRESS, port), backlog=_BACKLOG, reuse_port=False)
    except (OSError, OverflowError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise UserError(
                f"port {port} is in use on {ADDRESS}, perhaps by another controller: end it, or "
                "choose another port (0: any that is free)"
            ) from None
        raise UserError(f"cannot listen on port {port} of {ADDRESS}: {error}") from None


def _read(network: Path) -> Plan:
    try:
        content = json.loads(network.read_text())
    except OSError as error:
        raise UserError(f"{network} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{network} is not JSON: {error}") from None
    return build(content)


def _die_with(parent: int) -> None:
    """Have this process killed when the one that started it ends, however it does."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")
    if os.getppid() != parent:  # it ended before we asked
        os._exit(2)
