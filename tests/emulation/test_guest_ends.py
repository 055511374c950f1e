"""How a guest ends: by itself, by force, without room; and that nothing of it is left."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.engines.virtual import errors
from testbed.engines.virtual.guest import Guest, GuestSettings
from testbed.engines.virtual.kernel import Kernel, cache_directory, find_kernel
from testbed.engines.virtual.memory import choose_memory_place
from testbed.engines.virtual.probe import Probe
from tests.emulation.conftest import RunGuest
from tests.emulation.guest_programs import CHECKOUT, ECHO, OWNER, PYTHON, round_trips

pytestmark = pytest.mark.emulation


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


def test_a_program_that_spins_on_the_clock_is_ended(run: RunGuest) -> None:
    program = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
    with pytest.raises(
        errors.GuestHungError, match=r"'python3?[.\d]*' read the clock [\d,]+ times"
    ) as hung:
        run(PYTHON, "-c", program, stall_s=3)
    assert hung.value.console is not None
    assert str(hung.value.console) in str(hung.value)


def test_a_guest_that_waits_for_ever_is_ended(run: RunGuest) -> None:
    with pytest.raises(errors.GuestHungError, match="waits for something that does not come"):
        run("sleep", "infinity", quiet_s=10_000)


def test_it_is_seen_when_a_guest_waits(kernel: Kernel, tmp_path: Path) -> None:
    with Guest(["sh", "-c", "while sleep 1; do :; done"], GuestSettings(results=tmp_path)) as guest:
        probe, deadline = Probe(guest.kernel_pid, kernel), time.monotonic() + 60
        while (reading := probe.read()) is None or reading.virtual_ns < 20e9:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert 19e9 < reading.idle_ns <= reading.accounted_ns < 21e9 + reading.virtual_ns
        assert 0 < reading.free_pages < 2048 << 8


def test_a_guest_that_takes_too_long_is_ended(run: RunGuest) -> None:
    with pytest.raises(errors.GuestHungError, match="within 1 s"):
        run("sleep", "60", virtual=False, timeout_s=1)


@pytest.mark.parametrize("trusted", [False, True], ids=["traced", "trusted"])
def test_a_killed_guest_is_told_from_a_failed_command(
    kernel: Kernel, tmp_path: Path, trusted: bool
) -> None:
    settings = GuestSettings(results=tmp_path, virtual=False, trusted=trusted)
    with Guest(["sleep", "60"], settings) as guest:
        threading.Timer(1.0, os.kill, (guest.kernel_pid, signal.SIGKILL)).start()
        with pytest.raises(errors.GuestKilledError):
            guest.wait()
        assert members({guest.kernel_pid}) == []  # what it ran has died with it


def test_a_kernel_that_does_not_boot_is_told(kernel: Kernel, tmp_path: Path) -> None:
    broken = replace(kernel, linux=Path("/bin/false"))
    with (
        Guest(["true"], GuestSettings(results=tmp_path, kernel=broken)) as guest,
        pytest.raises(errors.BootFailedError, match="did not boot"),
    ):
        guest.wait()


def test_a_kernel_that_was_never_built_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.KernelNotBuiltError, match="run scripts/setup"):
        find_kernel(tmp_path)


def test_too_little_memory_is_told(run: RunGuest) -> None:
    with pytest.raises(errors.GuestMemoryError, match="give the guest less"):
        run("true", memory_mb=1 << 30)


def test_memory_moves_to_disk_when_no_tmpfs_has_room(tmp_path: Path) -> None:
    place = choose_memory_place(64, candidates=[Path("/nowhere"), tmp_path], mounts="")
    assert place.directory == tmp_path
    assert place.slow
    with pytest.raises(errors.GuestMemoryError, match="/dev/shm"):
        choose_memory_place(64, candidates=[Path("/nowhere")])


def test_results_that_cannot_be_written_are_told(run: RunGuest, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.GuestError, match="cannot be made"):
        run("true", results=tmp_path / "file" / "results")


def test_a_guest_may_read_more_files_than_a_process_may_open(
    kernel: Kernel, tmp_path: Path
) -> None:
    files = tmp_path / "results" / "files"
    files.mkdir(parents=True)
    for number in range(1200):
        (files / str(number)).write_text("x")
    program = "import glob, sys; print(sum(len(open(f).read()) for f in glob.glob(sys.argv[1])))"
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < 2000:
        pytest.skip(f"a process on this machine may open no more than {most} files")
    finished = subprocess.run(
        [PYTHON, "-c", OWNER, tmp_path / "results", PYTHON, "-c", program, f"{files}/*"],
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
    with pytest.raises(errors.ResultsNotWrittenError, match="cannot write the results"):
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
