"""The one place where the OpenFlow library is chosen: Ryu 4.34, or os-ken, its maintained fork.

``TESTBED_OPENFLOW`` in the environment names it when this module is first imported. Beyond the name
of the package and of one class nothing differs for an application, so the names below stand for
either. What the libraries would import and never use here is kept out: in a guest an import costs
some milliseconds, and these are several hundred of them.

Ryu runs on Eventlet, os-ken on native threads. Neither may poll, for each waking costs real time
while virtual time could jump. What they would do of themselves: wake for each connection every 5 s
(``socket_timeout``), only to wait again, which is turned off here; ask each switch for an echo, which
is off by default; Eventlet wakes once in 60 s when it has nothing to do. Neither ever spins.
"""

import contextlib
import importlib
import os
import sys
import types
import warnings
from typing import Any, Final

VARIABLE: Final = "TESTBED_OPENFLOW"
PACKAGES: Final[dict[str, str]] = {"ryu": "ryu", "os-ken": "os_ken"}
OPENFLOW_13: Final = 4  # OpenFlow 1.3, as its messages write it


def _keep_out_what_is_not_needed(package: str) -> None:
    os.environ["OSKEN_HUB_TYPE"] = "native"
    if package != "ryu":
        return
    os.environ["EVENTLET_NO_GREENDNS"] = "yes"  # Eventlet's own resolver of names
    # Eventlet's support of pyOpenSSL is optional, and an import that is None fails at once.
    sys.modules.setdefault("OpenSSL", None)  # type: ignore[arg-type]
    # Only `run_apps` uses the web server, which asks Eventlet for a name (ALREADY_HANDLED) that
    # newer versions do not have.
    sys.modules.setdefault("ryu.app.wsgi", types.ModuleType("ryu.app.wsgi"))
    _spare_distutils()
    for retiring in ("Eventlet", "The distutils package", "distutils Version classes"):
        warnings.filterwarnings("ignore", rf"\s*{retiring} (is|are) deprecated")


def _spare_distutils() -> None:
    """Have Ryu compare versions without setuptools, which would put all of its own for distutils."""
    if sys.version_info < (3, 12):
        if shim := sys.modules.get("_distutils_hack"):
            shim.remove_shim()
        return
    # Newer Pythons have no distutils. Ryu wants this of it, to tell versions of a routing daemon apart.
    version = types.ModuleType("distutils.version")
    vars(version)["LooseVersion"] = Version
    sys.modules.setdefault("distutils", types.ModuleType("distutils"))
    sys.modules.setdefault("distutils.version", version)


class Version(tuple[int, ...]):
    """A version such as "2.0", by its numbers."""

    __slots__ = ()

    def __new__(cls, text: str) -> "Version":
        """Read it."""
        return super().__new__(cls, map(int, text.split(".")))


LIBRARY: Final = os.environ.get(VARIABLE, "ryu")
if LIBRARY not in PACKAGES:
    raise ImportError(f"{VARIABLE} is {LIBRARY!r}; it must be one of {', '.join(PACKAGES)}")
_PACKAGE: Final = PACKAGES[LIBRARY]
_keep_out_what_is_not_needed(_PACKAGE)


def _module(name: str) -> Any:
    return importlib.import_module(f"{_PACKAGE}.{name}")


hub: Any = _module("lib.hub")
handler: Any = _module("controller.handler")
ofp_event: Any = _module("controller.ofp_event")
ofp_handler: Any = _module("controller.ofp_handler")
ofproto: Any = _module("ofproto.ofproto_v1_3")
parser: Any = _module("ofproto.ofproto_v1_3_parser")

_app_manager: Any = _module("base.app_manager")
_controller: Any = _module("controller.controller")

# The base class of applications.
Application: Any = _app_manager.RyuApp if _PACKAGE == "ryu" else _app_manager.OSKenApp
# What messages need to know of a switch: the version.
Protocol: Any = _module("ofproto.ofproto_protocol").ProtocolDesc


def serve_switch(connection: Any, address: Any) -> None:
    """Talk with a switch until it goes."""
    with contextlib.closing(_controller.Datapath(connection, address)) as switch:
        connection.settimeout(None)
        switch.serve()


class Handshake(ofp_handler.OFPHandler):
    """The library's own application, which greets switches, answers echoes and hands on events.

    It would also listen, but on fixed ports when told any, on all addresses, and beside another
    listener of the same port; and if it could not, it would only log that. See ``process``.
    """

    OFP_VERSIONS = (OPENFLOW_13,)

    def start(self) -> None:
        """Start to handle events, and nothing else."""
        Application.start(self)


def start(application: Any, *arguments: Any) -> Any:
    """Start an application, and what it needs; return its instance."""
    manager = _app_manager.AppManager.get_instance()
    handshake = manager.instantiate(Handshake)
    instance = manager.instantiate(application, *arguments)
    handshake.start()
    instance.start()
    return instance
