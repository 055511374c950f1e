"""Which versions took part in a run."""

import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version

ALWAYS = ("numpy", "networkx", "pyarrow")
EMULATION = ("mininet", "ryu", "os-ken", "scapy")
SWITCH = "ovs-vswitchd"
PATIENCE_S = 10


def versions(engine: object) -> dict[str, str]:
    """Of Python, the system and the packages that this engine uses; what is not found is left out."""
    emulated = engine in ("mininet", "virtual")
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in (*ALWAYS, *(EMULATION if emulated else ())):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if emulated and (switch := _of_program(SWITCH)):
        found["open vswitch"] = switch
    return found


def _of_program(name: str) -> str | None:
    """The number that a program gives when asked for its version."""
    try:
        done = subprocess.run(
            [name, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"\d+(\.\d+)+\S*", done.stdout)
    return number[0] if number else None
