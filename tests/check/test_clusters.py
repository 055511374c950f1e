"""Several clusters in one run are judged one by one."""

import pytest

from testbed.check import Verdict, check_events
from testbed.check.logs import Event


def sent(source: int, seq: int, cluster: int, t: int) -> list[Event]:
    """A process makes an event of a cluster, and delivers it."""
    facts = {"cluster": cluster}
    name = source, seq
    return [
        Event("send", *name, t=t),
        Event("cluster", *name, t=t, facts=facts),
        Event("deliver", *name, t=t),
    ]


def got(source: int, seq: int, t: int) -> Event:
    return Event("deliver", source, seq, t=t)


def sees(cluster: int, t: int = 0, interested: bool = True) -> Event:
    facts = {"cluster": cluster, "interested": interested, "begins": not t}
    return Event("interest", t=t, facts=facts)


def judged(*logs: list[Event]) -> Verdict:
    return check_events(range(len(logs)), dict(enumerate(logs)), optimistic=True)


@pytest.mark.parametrize(("other", "faults"), [(1, ()), (0, ("order",))])
def test_events_of_different_clusters_are_not_ordered(other: int, faults: tuple[str, ...]) -> None:
    verdict = judged(
        [sees(0), sees(1), *sent(0, 1, 0, 10)],
        [sees(0), sees(1), got(0, 1, 20), *sent(1, 1, other, 30), sees(0, 40)],
        [sees(0), sees(1), got(1, 1, 40), got(0, 1, 50)],
    )
    assert verdict.faults == faults
    assert (verdict.messages, verdict.deliveries, len(verdict.parts)) == (2, 5, 2)


def test_who_was_never_interested_must_not_deliver() -> None:
    verdict = judged([sees(0), *sent(0, 1, 0, 10)], [sees(1), got(0, 1, 20), sees(0, 30)])
    assert verdict.faults == ("misdelivered",)
    assert verdict.where("misdelivered") == [(1, (0, 1))]
    assert "node 1 delivered m(0,1), which was not sent to it" in verdict.explain()


def test_what_is_owed_is_what_is_sent_from_the_first_to_the_last_event_of_a_stay() -> None:
    events = [event for n in range(1, 8) for event in sent(0, n, 0, 10 * n)]
    here = [sees(0, 25), got(0, 3, 35), got(0, 5, 55), sees(0, 56, False)]
    again = [sees(0, 65), got(0, 7, 75)]
    verdict = judged([sees(0), *events], [*here, *again])
    assert verdict.ok
    assert verdict.where("loss") == [
        (1, (0, 4))
    ]  # 1 and 2 were before it came, 6 while it was away
    assert verdict.due == 7 + 4
    assert verdict.figures["entering_ms_mean"] == pytest.approx(10e-6)
    assert "1 of 11 deliveries lost" in verdict.headline
    assert "7 messages, 10 deliveries, 2 nodes" in verdict.parts[0].headline


def test_a_message_of_no_cluster_leaves_doubt() -> None:
    verdict = judged([sees(0), *sent(0, 1, 0, 10), Event("send", 0, 2, t=20)])
    assert verdict.verdict == "unknown"
    assert verdict.problems == ("1 messages belong to no cluster",)


def claim(t: int, ticket: int | None, cluster: int) -> Event:
    assigns: list[int] = []
    owns = {"owns": ticket, "epoch": 0, "until": None, "assigns": assigns, "from": 0}
    return Event("tickets", t=t, facts={**owns, "cluster": cluster})


@pytest.mark.parametrize(("other", "faults"), [(1, ()), (0, ("co_owned",))])
def test_the_same_ticket_of_two_clusters_may_have_two_owners(
    other: int, faults: tuple[str, ...]
) -> None:
    verdict = judged(
        [sees(0), claim(0, 3, 0), *sent(0, 1, 0, 10)],
        [sees(1), claim(0, 3, other), *sent(1, 1, 1, 10)],
    )
    assert verdict.faults == faults
    if faults:
        assert verdict.explain()[-1].startswith("cluster 0: nodes 0 and 1 both owned ticket 3")
