"""All that can happen to three processes on leases with three tickets, within small limits."""

import pytest

from testbed.explore.tickets.command import main
from testbed.explore.tickets.search import Search
from testbed.explore.tickets.system import System, Used, ViolationError
from testbed.protocols.broken import leases as broken
from testbed.protocols.cluster.tickets import Leases


def searched(kind: type[Leases], limits: Used, parts: int = 1) -> Search:
    search = Search(System(kind, limits, parts))
    assert search.run()
    return search


@pytest.mark.parametrize(
    ("parts", "limits"),
    [(1, Used(1, 1)), (1, Used(1, slips=1)), (2, Used(1)), (4, Used(1))],
    ids=str,
)
def test_no_ticket_has_two_owners_or_coordinators_in_any_state(parts: int, limits: Used) -> None:
    assert len(searched(Leases, limits, parts).found) > 400


def test_after_any_one_fault_each_ticket_is_owned_or_assignable_within_six_rounds() -> None:
    search = searched(Leases, Used(1))
    times = [search.recovery(state) for state, _, _ in search.found]
    assert max(time for time in times if time is not None) == 6
    assert None not in times


# at least so many faults; Obedient and Timeless need more than three processes, or than is tried here
FOUND = {
    broken.LateVotes: Used(2),
    broken.SleepWalker: Used(1),
    broken.NoQuarantine: Used(1),
    broken.FickleVoter: Used(1),
    broken.Presumptuous: Used(1),
}


@pytest.mark.parametrize("kind", FOUND, ids=lambda kind: kind.__name__)
def test_the_search_catches_the_broken_versions(kind: type[Leases]) -> None:
    assert {*FOUND, broken.Obedient, broken.Timeless} == set(broken.BROKEN_LEASES)
    search = Search(System(kind, FOUND[kind], 1))
    with pytest.raises(ViolationError):
        search.run()
    assert search.trace()[-1] == "tick"
    assert not search.queues[sum(FOUND[kind]) - 1]


def test_clocks_that_differ_by_more_than_the_quarantine_allows_are_caught() -> None:
    with pytest.raises(ViolationError):
        Search(System(Leases, Used(1, slips=2), 1)).run()


def test_the_command_tells_how_much_it_has_seen_and_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["explore-tickets", "--faults", "1", "--parts", "1"]
    monkeypatch.setattr("sys.argv", few)
    assert main() == 0
    assert "states are safe" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr("sys.argv", [*few, "--kind", "NoQuarantine"])
    assert main() == 1
    assert "is another's" in " ".join(capsys.readouterr().out.split())
