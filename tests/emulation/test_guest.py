"""The guest: one command in a user-mode kernel, in virtual or in real time."""

import re
import shutil
import time
from pathlib import Path

import pytest

from testbed.engines import needs
from testbed.engines.virtual.guest import Guest, GuestSettings
from testbed.engines.virtual.kernel import Kernel
from tests.emulation.conftest import RunGuest
from tests.emulation.guest_programs import (
    CHECKOUT,
    ECHO,
    EXCHANGE,
    FLOWS,
    MININET,
    PRELUDE,
    PYTHON,
    SWITCH,
    TURNS,
    round_trips,
)

pytestmark = pytest.mark.emulation

needs_switch = pytest.mark.skipif(
    not needs.openvswitch().ok, reason="Open vSwitch is not installed"
)


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


@pytest.mark.parametrize("trusted", [True, False])
def test_who_polls_lets_others_run(run: RunGuest, trusted: bool) -> None:
    finished = run(PYTHON, "-c", TURNS, trusted=trusted)
    assert sorted(finished.stdout.splitlines()) == ["done 0", "done 1"]
    assert finished.result.guest_s < 0.01  # no tick of the clock has ended a time slice


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
