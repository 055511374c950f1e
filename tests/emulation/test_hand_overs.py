"""A program in a guest and its kernel take turns at each page fault: there are few of them."""

import resource
from pathlib import Path

import pytest

from testbed.engines.virtual.guest import Guest, GuestSettings
from testbed.engines.virtual.kernel import Kernel
from tests.emulation.conftest import RunGuest
from tests.emulation.guest_programs import PYTHON

pytestmark = pytest.mark.emulation

PAGE = 4096
PAGES = 16_384  # 64 MiB
WRITE = f"""
memory = bytearray({PAGES * PAGE})
for page in range({PAGES}):
    memory[page * {PAGE}] = 1
"""
FORK = """
import os, time
if (child := os.fork()) == 0:
    os.write(1, b"here")
    time.sleep(2)
    os._exit(0)
os.waitpid(child, 0)
"""
SHARED = f"""
import os, re
def used_kb():
    return int(re.search(r"AnonPages: *(\\d+)", open("/proc/meminfo").read())[1])
if (child := os.fork()) == 0:
    before = used_kb()
    for page in range(0, {PAGES}, 16):
        memory[page * {PAGE}] = 2
    print(used_kb() - before)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.fixture
def patched(kernel: Kernel) -> Kernel:
    """A kernel in which faults are few."""
    if not kernel.release.can_leave_untraced:
        pytest.skip(f"Linux {kernel.release.name} takes a fault for each page")
    return kernel


def turns(run: RunGuest, program: str) -> int:
    """The turns of a guest that runs a program: each is two context switches of the host."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = run(PYTHON, "-S", "-c", program, trusted=True)
    assert finished.result.returncode == 0, finished.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw) // 2


@pytest.mark.usefixtures("patched")
def test_a_fault_brings_the_pages_around(run: RunGuest) -> None:
    assert turns(run, WRITE) - turns(run, "") < PAGES / 8


def test_a_forked_child_copies_only_what_it_writes_to(run: RunGuest) -> None:
    copied_kb = int(run(PYTHON, "-S", "-c", WRITE + SHARED, trusted=True).stdout)
    assert copied_kb < 2 * PAGES / 16 * PAGE / 1024


@pytest.mark.parametrize("trusted", [True, False])
def test_a_forked_child_maps_only_what_it_touches(
    patched: Kernel, tmp_path: Path, trusted: bool
) -> None:
    seen: list[list[int]] = []
    settings = GuestSettings(
        results=tmp_path,
        virtual=False,
        trusted=trusted,
        kernel=patched,
        stdout=lambda _: seen.append(mapped_pages(guest.kernel_pid)),
    )
    with Guest([PYTHON, "-S", "-c", WRITE + FORK], settings) as guest:
        assert guest.wait().returncode == 0
    *_, child, parent = sorted(seen[0])
    assert parent > PAGES
    assert child < PAGES / 4


def mapped_pages(kernel_pid: int) -> list[int]:
    """The size of each process of a guest, as the host sees it."""
    threads = Path(f"/proc/{kernel_pid}/task")
    children = [
        pid for task in threads.iterdir() for pid in (task / "children").read_text().split()
    ]
    return [int(Path(f"/proc/{pid}/statm").read_text().split()[0]) for pid in children]
