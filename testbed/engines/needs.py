"""What this machine can do: which engines run here, what is missing, and how to fix it."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from testbed.compiled import compiled
from testbed.engines.virtual.errors import GuestError
from testbed.engines.virtual.kernel import find_kernel
from testbed.engines.virtual.memory import choose_memory_place, require_files
from testbed.engines.virtual.walls import landlock_version
from testbed.errors import EXTRAS, SETUP, UserError, installing, missing, require

GB = 1 << 30
ROOM_GB = 2
JAVA = 17
GUEST_MB = 1280  # what the virtual engine asks for, for 16 nodes
BACKLOG = 100_000
OPENVSWITCH = ("ovs-vsctl", "ovs-ofctl", "ovs-vswitchd", "ovsdb-server", "ovsdb-tool")


@dataclass(frozen=True)
class Ability:
    """Something that a machine has or lacks."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    serves: str = ""


def abilities(directory: Path) -> list[Ability]:
    """All that matters, for runs below a directory."""
    return [
        python_packages(),
        simulator(),
        root(),
        mininet(),
        openvswitch(),
        netem(),
        backlog(),
        virtual_kernel(),
        guest_memory(),
        walls(),
        java(),
        memory(),
        disk(directory),
    ]


def emulation_in_real_time() -> list[Ability]:
    """What the mininet engine lacks here."""
    return [lack for lack in (root(), mininet(), openvswitch(), netem()) if not lack.ok]


def require_emulation(*more: Ability) -> None:
    """Refuse to go on without what an emulated network takes, before Mininet is imported."""
    for ability in (*more, mininet(), openvswitch()):
        if not ability.ok:
            raise UserError(
                f"an emulated network needs {ability.name}: {ability.remedy}, or use another engine"
            )
    require("emulation")


def simulator() -> Ability:
    """It is faster where its core is compiled."""
    ok = compiled() is not None
    detail = "compiled" if ok else "runs as Python, more slowly"
    remedy = f"sudo apt-get install gcc python3-dev, then {SETUP}"
    return Ability("simulator's core", ok, detail, remedy, "simulate")


def root() -> Ability:
    """Namespaces and queues of the machine itself need root."""
    ok = os.geteuid() == 0
    return Ability("root", ok, "yes" if ok else "no", "run with sudo", "mininet")


def mininet() -> Ability:
    """Mininet is a Debian package of Debian's Python."""
    ok = importlib.util.find_spec("mininet") is not None
    remedy = "sudo apt-get install mininet (a virtual environment needs --system-site-packages)"
    return _installed("Mininet", ok, remedy)


def openvswitch() -> Ability:
    """Installed is enough: each run starts its own."""
    path = _programs()
    ok = all(shutil.which(program, path=path) for program in OPENVSWITCH)
    remedy = "sudo apt-get install openvswitch-switch"
    return _installed("Open vSwitch", ok, remedy)


def _installed(name: str, ok: bool, remedy: str) -> Ability:
    return Ability(name, ok, "installed" if ok else "not installed", remedy, "mininet, virtual")


def netem() -> Ability:
    """Try it on a loopback interface of nobody's."""
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    done = _run(*unshare, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    ok = done is not None and done.returncode == 0
    detail = "works" if ok else "this kernel has none, or does not let us"
    return Ability("netem", ok, detail, "use --engine virtual, or the Vagrant VM", "mininet")


def backlog() -> Ability:
    """Packets that are between two interfaces at one moment; beyond it the kernel drops them."""
    remedy = f"sudo sysctl -w net.core.netdev_max_backlog={BACKLOG}"
    try:
        room = int(Path("/proc/sys/net/core/netdev_max_backlog").read_text())
    except FileNotFoundError:  # it belongs to the machine, and this is a container
        return Ability("packet backlog", False, "unknown in a container", remedy, "mininet")
    return Ability("packet backlog", room >= BACKLOG, f"{room:,} packets", remedy, "mininet")


def virtual_kernel() -> Ability:
    """The user-mode kernel that scripts/setup builds."""
    name, remedy = "virtual-time kernel", SETUP
    if (machine := platform.machine()) != "x86_64":
        detail, ok = f"for x86-64 only, and this is {machine}", False
        remedy = "use --engine mininet, with sudo, or --engine simulate"
        return Ability(name, ok, detail, remedy, "virtual")
    try:
        detail, ok = str(find_kernel().linux), True
    except GuestError:
        detail, ok = "not built", False
    return Ability(name, ok, detail, remedy, "virtual")


def guest_memory() -> Ability:
    """A guest works on a disk too, but slower."""
    try:
        require_files()
        place = choose_memory_place(GUEST_MB)
    except GuestError as error:
        ok, detail = False, str(error)
    else:
        ok, detail = not place.slow, f"in {place.directory}" + ", slow: a disk" * place.slow
    remedy = "enlarge /dev/shm to 2 GB or more (of a container: --shm-size=2g)"
    return Ability("room for a guest", ok, detail, remedy, "virtual")


def walls() -> Ability:
    """What keeps a guest from the host's files; without it, runs are the same."""
    version = landlock_version()
    return Ability(
        "walls around a guest",
        version > 0,
        f"Landlock {version}" if version else "the kernel has no Landlock",
        "use Linux 5.13 or newer, with landlock among its `lsm=`, for protocols you do not trust",
        "virtual",
    )


def java() -> Ability:
    """Spark needs it."""
    remedy = "sudo apt-get install default-jre-headless"
    home = os.environ.get("JAVA_HOME")
    done = _run(f"{home}/bin/java" if home else "java", "-version")
    if done is None:
        return Ability("Java", False, "not installed", remedy, "digest")
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    version = int(found[1]) if found else 0
    return Ability("Java", version >= JAVA, f"version {version}", remedy, "digest")


def memory() -> Ability:
    """What is available now."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    free = int(found[1]) * 1024 if found else 0
    remedy = "stop other programs, or run smaller experiments"
    return Ability("free memory", free >= ROOM_GB * GB, f"{free / GB:.1f} GB", remedy, "all")


def disk(directory: Path) -> Ability:
    """Where the runs go."""
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    remedy = "make room, or choose another directory with --runs"
    return Ability("free disk", free >= ROOM_GB * GB, f"{free / GB:.1f} GB", remedy, "all")


def python_packages() -> Ability:
    """Those that are only imported when they are needed."""
    lacking = sorted({library for extra in EXTRAS for library in missing(extra)})
    detail = f"missing: {', '.join(lacking)}" if lacking else "installed"
    return Ability("Python packages", not lacking, detail, installing("all"), "all")


def _programs() -> str:
    """Where programs are, with those of the system: Debian has an ordinary user's PATH lack them."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"])


def _run(*command: str) -> subprocess.CompletedProcess[str] | None:
    environment = os.environ | {"PATH": _programs()}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=environment
        )
    except (FileNotFoundError, PermissionError):
        return None
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "no answer")
