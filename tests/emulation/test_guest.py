"""The guest: one command in a user-mode kernel, in virtual or in real time."""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.engines import needs
from testbed.engines.virtual import (
    BootFailedError,
    Guest,
    GuestError,
    GuestHungError,
    GuestKilledError,
    GuestMemoryError,
    GuestSettings,
    KernelNotBuiltError,
    ResultsNotWrittenError,
)
from testbed.engines.virtual.kernel import Kernel, cache_directory, find_kernel
from testbed.engines.virtual.memory import choose_memory_place
from tests.emulation.conftest import RunGuest

pytestmark = pytest.mark.emulation

CHECKOUT = Path(__file__).parents[2]
PYTHON = sys.executable

# Runs a command in a guest: python -c OWNER RESULTS COMMAND…
OWNER = """
import sys
from pathlib import Path
from testbed.engines.virtual import GuestSettings, run_guest
sys.exit(run_guest(sys.argv[2:], GuestSettings(results=Path(sys.argv[1]))).returncode)
"""
# Programs for the guest. Two network namespaces, connected directly or through a switch, a delay of
# 7 ms in one direction, and a datagram that goes there and back. Printed are the round trips in
# nanoseconds, and the wall clock; the first trip, which also resolves the address, is left out.
PRELUDE = """
import ctypes, os, socket, subprocess, sys, time

def ip(script, *options):
    subprocess.run(["ip", *options, "-batch", "-"], input=script, text=True, check=True)

def socket_in(namespace):
    with open(f"/run/netns/{namespace}") as file:
        assert ctypes.CDLL(None).setns(file.fileno(), 0x40000000) == 0
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
"""
WIRE = """
ip("netns add a\\nnetns add b\\nlink add va netns a type veth peer name vb netns b\\n")
"""
# The bridge learns addresses. The first packet of a flow goes up to ovs-vswitchd, which handles
# none if it believes in no CPU.
SWITCH = """
from testbed.engines.mininet.switches.daemons import open_vswitch
switch = open_vswitch()
switch.__enter__()
ip("netns add a\\nnetns add b\\n"
   "link add va netns a type veth peer name pa\\nlink add vb netns b type veth peer name pb\\n"
   "link set pa up\\nlink set pb up\\n")
subprocess.run("ovs-vsctl add-br s -- add-port s pa -- add-port s pb".split(), check=True)
"""
EXCHANGE = """
ip("addr add 10.0.0.1/24 dev va\\nlink set va up\\n", "-n", "a")
ip("addr add 10.0.0.2/24 dev vb\\nlink set vb up\\n", "-n", "b")
subprocess.run("tc -n a qdisc add dev va root netem delay 7ms".split(), check=True)
home = os.open("/proc/self/ns/net", os.O_RDONLY)
server, client = socket_in("b"), socket_in("a")
assert ctypes.CDLL(None).setns(home, 0x40000000) == 0
server.bind(("10.0.0.2", 7000))
client.settimeout(5)
if not os.fork():
    while True:
        server.sendto(*server.recvfrom(100))
for number in range(int(sys.argv[1])):
    time.sleep(0.05)
    sent = time.monotonic_ns()
    client.sendto(b"%d" % number, ("10.0.0.2", 7000))
    client.recv(100)
    if number:
        print("trip", time.monotonic_ns() - sent, time.time_ns())
"""
ECHO = PRELUDE + WIRE + EXCHANGE
FLOWS = """
print(subprocess.check_output(["ovs-dpctl", "dump-flows"], text=True))
"""
MININET = """
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from testbed.engines.mininet.switches.daemons import open_vswitch
with open_vswitch():
    net = Mininet(SingleSwitchTopo(2), controller=None)
    net.start()
    net.get("s1").cmd("ovs-ofctl add-flow s1 actions=NORMAL")
    print("lost", net.pingAll(timeout="2"))
    net.stop()
"""


def round_trips(stdout: str) -> list[int]:
    lines = (line.split() for line in stdout.splitlines())
    return [int(words[1]) for words in lines if words[:1] == ["trip"]]


def processes() -> list[tuple[int, int, int]]:
    """Return process, parent and session of everything that runs on this needs."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            found.append((int(path.parent.name), int(fields[1]), int(fields[3])))
    return found


def children(parent: int) -> list[int]:
    return [process for process, its_parent, _ in processes() if its_parent == parent]


def members(sessions: set[int]) -> list[int]:
    return [process for process, _, session in processes() if session in sessions]


@pytest.mark.parametrize(
    ("words", "returncode"),
    [(["sh", "-c", "exit 0"], 0), (["sh", "-c", "exit 37"], 37), (["sh", "-c", "kill -9 $$"], -9)],
)
def test_exit_status_is_carried(run: RunGuest, words: list[str], returncode: int) -> None:
    assert run(*words).result.returncode == returncode


def test_a_command_that_does_not_exist_is_named(run: RunGuest) -> None:
    finished = run("no-such-command")
    assert finished.result.returncode == 127
    assert "cannot run no-such-command: No such file" in finished.stderr


def test_output_is_kept_apart_and_logged(run: RunGuest) -> None:
    finished = run("sh", "-c", "printf 'one\\ntwo'; printf 'three\\n' >&2")
    assert (finished.stdout, finished.stderr) == ("one\ntwo", "three\n")
    log = finished.result.console.read_text()
    assert "one\ntwo" in log
    assert "three\n" in log


def test_output_appears_while_the_command_runs(kernel: Kernel, tmp_path: Path) -> None:
    arrivals = []
    settings = GuestSettings(
        results=tmp_path, virtual=False, stdout=lambda data: arrivals.append(time.monotonic())
    )
    with Guest(["sh", "-c", "echo first; sleep 1; echo second"], settings) as guest:
        guest.wait()
    assert arrivals[1] - arrivals[0] > 0.5


def test_words_environment_and_directory_arrive_as_given(run: RunGuest, tmp_path: Path) -> None:
    place = tmp_path / "a directory"
    place.mkdir()
    words = ["plain", "with space", "", "$HOME", "naïve\n"]
    program = 'import os, sys; print([sys.argv[1:], os.getcwd(), os.environ["X"], os.getuid()])'
    finished = run(PYTHON, "-c", program, *words, cwd=place, env={"X": "a=b c"})
    assert finished.stdout == f"{[words, str(place), 'a=b c', 0]}\n"


def test_host_files_cannot_be_changed(run: RunGuest, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("before")
    before = {
        path: path.read_bytes() for path in (Path("/etc/passwd"), CHECKOUT / "pyproject.toml")
    }
    script = (
        f"set -e; echo changed > /etc/passwd; cat /etc/passwd; rm {CHECKOUT}/pyproject.toml;"
        f"echo after > {outside}; touch /etc/made-by-guest {CHECKOUT}/made-by-guest"
    )
    finished = run("sh", "-c", script)
    # In the guest all of this works, or the test would prove nothing.
    assert finished.result.returncode == 0, finished.stderr
    assert finished.stdout == "changed\n"
    assert {path: path.read_bytes() for path in before} == before
    assert outside.read_text() == "before"
    assert not Path("/etc/made-by-guest").exists()
    assert not (CHECKOUT / "made-by-guest").exists()


def test_results_are_written(run: RunGuest, tmp_path: Path) -> None:
    script = 'mkdir "$0/deep"; head -c 5000000 /dev/zero | tr "\\0" x > "$0/deep/file"'
    finished = run("sh", "-c", script, str(tmp_path), results=tmp_path)
    assert finished.result.returncode == 0, finished.stderr
    assert (tmp_path / "deep" / "file").read_bytes() == b"x" * 5_000_000


def test_an_hour_of_sleep_takes_no_time(run: RunGuest) -> None:
    finished = run("sleep", "3600")
    assert finished.result.guest_s == pytest.approx(3600, abs=0.001)
    assert finished.result.wall_s < 2


def test_the_clock_starts_where_it_is_told(run: RunGuest) -> None:
    start_ns = 1_000_000_000 * 10**9
    finished = run("date", "+%s", start_ns=start_ns)
    assert 0 <= int(finished.stdout) - 1_000_000_000 < 60
    finished = run("date", "+%s", start_ns=None)
    assert abs(int(finished.stdout) - time.time()) < 60


def test_link_delay_is_exact_in_virtual_time(run: RunGuest) -> None:
    trips = round_trips(run(PYTHON, "-c", ECHO, "50").stdout)
    assert len(trips) == 49
    assert all(7_000_000 <= trip <= 7_002_000 for trip in trips), trips


def test_link_delay_is_roughly_right_in_real_time(run: RunGuest) -> None:
    trips = sorted(round_trips(run(PYTHON, "-c", ECHO, "10", virtual=False).stdout))
    assert trips[0] >= 7_000_000
    assert trips[len(trips) // 2] < 30_000_000


def test_two_runs_give_the_same_transcript(run: RunGuest, tmp_path: Path) -> None:
    program = ECHO + "print(os.urandom(8).hex(), os.getpid(), id(client), {'one', 'two', 'three'})"
    first, second = (
        run(PYTHON, "-c", program, "20", results=tmp_path / place, seed=7).stdout
        for place in ("a", "b/somewhere/else")
    )
    assert first == second
    assert round_trips(first)
    assert run(PYTHON, "-c", program, "20", seed=8).stdout != first


def test_a_program_that_spins_on_the_clock_is_ended(run: RunGuest) -> None:
    program = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
    with pytest.raises(
        GuestHungError, match=r"'python3?[.\d]*' read the clock [\d,]+ times"
    ) as hung:
        run(PYTHON, "-c", program, stall_s=3)
    assert hung.value.console is not None
    assert str(hung.value.console) in str(hung.value)


def test_a_guest_that_waits_for_ever_is_ended(run: RunGuest) -> None:
    with pytest.raises(GuestHungError, match="waits for something that does not come"):
        run("sleep", "infinity", quiet_s=10_000)


def test_a_guest_that_takes_too_long_is_ended(run: RunGuest) -> None:
    with pytest.raises(GuestHungError, match="within 1 s"):
        run("sleep", "60", virtual=False, timeout_s=1)


def test_a_killed_guest_is_told_from_a_failed_command(kernel: Kernel, tmp_path: Path) -> None:
    with Guest(["sleep", "60"], GuestSettings(results=tmp_path, virtual=False)) as guest:
        threading.Timer(1.0, os.kill, (guest.kernel_pid, signal.SIGKILL)).start()
        with pytest.raises(GuestKilledError):
            guest.wait()


def test_a_kernel_that_does_not_boot_is_told(kernel: Kernel, tmp_path: Path) -> None:
    broken = replace(kernel, linux=Path("/bin/false"))
    with (
        Guest(["true"], GuestSettings(results=tmp_path), broken) as guest,
        pytest.raises(BootFailedError, match="did not boot"),
    ):
        guest.wait()


def test_a_kernel_that_was_never_built_is_told(tmp_path: Path) -> None:
    with pytest.raises(KernelNotBuiltError, match="run scripts/setup"):
        find_kernel(tmp_path)


def test_too_little_memory_is_told(run: RunGuest) -> None:
    with pytest.raises(GuestMemoryError, match="give the guest less"):
        run("true", memory_mb=1 << 30)


def test_memory_moves_to_disk_when_no_tmpfs_has_room(tmp_path: Path) -> None:
    place = choose_memory_place(64, candidates=[Path("/nowhere"), tmp_path], mounts="")
    assert place.directory == tmp_path
    assert place.slow
    with pytest.raises(GuestMemoryError, match="/dev/shm"):
        choose_memory_place(64, candidates=[Path("/nowhere")])


def test_results_that_cannot_be_written_are_told(run: RunGuest, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GuestError, match="cannot be made"):
        run("true", results=tmp_path / "file" / "results")


def test_a_guest_may_read_more_files_than_a_process_may_open(
    kernel: Kernel, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    for number in range(1200):
        (tmp_path / "files" / str(number)).write_text("x")
    files = str(tmp_path / "files" / "*")
    program = "import glob, sys; print(sum(len(open(f).read()) for f in glob.glob(sys.argv[1])))"
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < 2000:
        pytest.skip(f"a process on this machine may open no more than {most} files")
    finished = subprocess.run(
        [PYTHON, "-c", OWNER, tmp_path / "results", PYTHON, "-c", program, files],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most)),
        check=True,
        capture_output=True,
        cwd=CHECKOUT,
    )
    assert finished.stdout == b"1200\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a small file system")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_fails_the_command(run: RunGuest, small_disk: Path, tmp_path: Path) -> None:
    command = ("head", "-c", "1000000", "/dev/zero")
    script = f"{' '.join(command)} > {small_disk}/file"
    finished = run("sh", "-c", script, results=small_disk, console=tmp_path / "log")
    assert finished.result.returncode == 1
    assert "No space left" in finished.stderr


def test_a_full_disk_is_told_when_the_command_cannot_know(
    run: RunGuest, small_disk: Path, tmp_path: Path
) -> None:
    program = """if True:
        import mmap, sys
        with open(sys.argv[1] + "/file", "w+b") as file:
            file.truncate(1_000_000)
            mmap.mmap(file.fileno(), 0)[:] = bytes(range(250)) * 4000
    """
    with pytest.raises(ResultsNotWrittenError, match="cannot write the results"):
        run(
            *(PYTHON, "-c", program, str(small_disk)),
            results=small_disk,
            console=tmp_path / "log",
        )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_its_owner(kernel: Kernel, tmp_path: Path, how: signal.Signals) -> None:
    shared = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path("/tmp")
    place = Path(tempfile.mkdtemp(prefix="owner-", dir=shared))
    script = "sleep 1000 & sleep 1000 & echo up; while :; do :; done"
    owner = subprocess.Popen(
        [PYTHON, "-c", OWNER, tmp_path, "sh", "-c", script],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
    )
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == b"up\n"
        (guard,) = children(owner.pid)
        (kernel_pid,) = children(guard)
        sessions = {guard, kernel_pid}  # each leads its own
        # Both, and a process for each of init, sh and twice sleep.
        assert len(members(sessions)) >= 6
        owner.send_signal(how)
        owner.wait(10)
        deadline = time.monotonic() + 10
        while members(sessions) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert members(sessions) == []
        assert list(place.iterdir()) == []
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
        shutil.rmtree(place)


def test_two_guests_at_once_do_not_disturb_each_other(run: RunGuest, tmp_path: Path) -> None:
    alone = run(PYTHON, "-c", ECHO, "10", results=tmp_path / "alone").stdout
    together: dict[str, str] = {}

    def echo(name: str) -> None:
        together[name] = run(PYTHON, "-c", ECHO, "10", results=tmp_path / name).stdout

    threads = [threading.Thread(target=echo, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == {"left": alone, "right": alone}


@pytest.mark.skipif(os.geteuid() != 0, reason="is an ordinary user already, in all other tests")
def test_an_ordinary_user_can_do_the_same(kernel: Kernel) -> None:
    nobody = 65534
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        # Neither this user's cache nor the checkout need be open to others.
        home = Path(directory)
        home.chmod(0o755)
        shutil.copytree(CHECKOUT / "testbed", home / "testbed")
        cache = home / "causal-testbed" / "kernel"
        for file in (kernel.linux, kernel.init):
            shutil.copytree(file.parent, cache / file.parent.relative_to(cache_directory()))
        (home / "results").mkdir()
        os.chown(home / "results", nobody, nobody)
        python = os.path.realpath(PYTHON)
        finished = subprocess.run(
            [python, "-c", OWNER, home / "results", python, "-c", ECHO, "5"],
            check=False,
            env={"HOME": directory, "XDG_CACHE_HOME": directory, "PATH": os.environ["PATH"]},
            user=nobody,
            group=nobody,
            extra_groups=[],
            cwd=home,
            capture_output=True,
            text=True,
        )
    assert finished.returncode == 0, finished.stderr
    assert all(7_000_000 <= trip <= 7_002_000 for trip in round_trips(finished.stdout))


needs_switch = pytest.mark.skipif(
    not needs.openvswitch().ok, reason="Open vSwitch is not installed"
)


@needs_switch
@pytest.mark.parametrize("virtual", [True, False])
def test_open_vswitch_passes_packets(run: RunGuest, virtual: bool) -> None:
    finished = run(PYTHON, "-c", PRELUDE + SWITCH + EXCHANGE + FLOWS, "5", virtual=virtual)
    assert finished.result.returncode == 0, finished.stderr
    trips = round_trips(finished.stdout)
    assert len(trips) == 4
    if virtual:
        assert all(7_000_000 <= trip <= 7_003_000 for trip in trips), trips
    # The kernel's datapath has learnt the flow from ovs-vswitchd and uses it.
    assert re.search(r"eth_type\(0x0800\).*packets:[1-9]", finished.stdout)


@needs_switch
@pytest.mark.skipif(shutil.which("mn") is None, reason="Mininet is not installed")
@pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
@pytest.mark.parametrize("virtual", [True, False])
def test_mininet_starts(run: RunGuest, virtual: bool) -> None:
    finished = run(PYTHON, "-c", MININET, virtual=virtual)
    assert finished.result.returncode == 0, finished.stderr
    assert "lost 0.0" in finished.stdout
