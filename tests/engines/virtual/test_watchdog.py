"""When a guest is given up: observations as they are seen, one a second."""

from testbed.engines.virtual.probe import Reading
from testbed.engines.virtual.watchdog import Observation, Watchdog

STALL_S = 10.0


def seen(
    now_s: float, used_s: float, idle_ns: int = 0, output: int = 0, free_pages: int = 10_000
) -> Observation:
    return Observation(now_s, used_s, Reading(5, idle_ns, 7, 3, "python", free_pages), output)


def watch(*observations: Observation) -> str | None:
    """What is said of the last of these; nothing of those before."""
    watchdog = Watchdog(virtual=True, stall_s=STALL_S, quiet_s=1e9)
    *before, last = observations
    assert [watchdog.observe(one) for one in before] == [None] * len(before)
    return watchdog.observe(last)


def test_a_guest_that_computes_for_too_long_is_ended() -> None:
    said = watch(seen(0, 0), seen(5, 5), seen(10, 9.9), seen(11, 10.1))
    assert said is not None
    assert said.startswith("The guest has stood still for 11 s, 10 s of CPU time, and was ended")


def test_on_a_busy_machine_it_may_take_longer() -> None:
    assert watch(*(seen(10 * s, s) for s in range(10))) is None


def test_but_not_for_ever() -> None:
    assert watch(*(seen(10 * s, 0) for s in range(11))) is not None


def test_a_machine_that_boots_slowly_has_longer() -> None:
    observations = [seen(0, 0), seen(11, 11), seen(39, 39), seen(41, 41)]
    for boot_s, ended in ((0.1, 1), (0.5, 1), (2.0, 3)):
        watchdog = Watchdog(virtual=True, stall_s=STALL_S, quiet_s=1e9)
        watchdog.booted(boot_s)
        said = [watchdog.observe(one) is not None for one in observations]
        assert said.index(True) == ended, boot_s


def test_one_that_computes_in_ever_more_memory_is_at_work() -> None:
    assert watch(*(seen(s, s, free_pages=10_000 - 50 * s) for s in range(100))) is None


def test_one_whose_memory_comes_and_goes_spins() -> None:
    pages = [10_000, 5_000, 9_000, 5_010, 9_900, 4_990]
    said = watch(*(seen(3 * i, 3 * i, free_pages=free) for i, free in enumerate(pages)))
    assert said is not None


def test_an_idle_moment_and_output_are_progress() -> None:
    for progress in (seen(8, 8, idle_ns=1), seen(8, 8, output=1)):
        later = seen(17, 17, progress.reading.idle_ns if progress.reading else 0, progress.output)
        assert watch(seen(0, 0), progress, later) is None
