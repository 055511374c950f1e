"""The oracle for protocols that may lose messages: losses are counted, the order of the rest judged."""

import random
from pathlib import Path
from typing import Any, ClassVar

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from testbed.check import Event, Verdict, check_events, check_run
from testbed.protocols import PROTOCOLS, Timestamp
from tests.check.brute_force import Execution, by_brute_force
from tests.check.events import Logs, Name, deliver, send, triangle
from tests.check.events import write_run as write_logs
from tests.command_line import CommandLine


def check(logs: Logs) -> Verdict:
    return check_events(logs, logs, optimistic=True)


@pytest.mark.parametrize(
    ("at_c", "faults", "lost"),
    [
        ([deliver(0, 1), deliver(1, 1)], (), 0),
        ([deliver(1, 1)], (), 1),
        ([deliver(0, 1)], (), 1),
        ([], (), 2),
        ([deliver(1, 1), deliver(0, 1)], ("order",), 0),
        ([deliver(0, 1), deliver(0, 1)], ("duplicate",), 1),
        ([deliver(0, 1), deliver(0, 2)], ("misdelivered",), 1),
        ([deliver(1, 1), deliver(2, 9)], ("unsent",), 1),
    ],
)
def test_the_relay_triangle(at_c: list[Event], faults: tuple[str, ...], lost: int) -> None:
    verdict = check(triangle(*at_c))
    assert verdict.faults == faults
    assert verdict.verdict == ("invalid" if faults else "valid")
    assert verdict.count("loss") == lost
    assert verdict.due == 3


def test_an_order_that_goes_through_a_lost_message_counts() -> None:
    """c never gets m(1,1), which went between m(0,1) and m(3,1); these two are in order still."""
    logs = triangle(deliver(3, 1), deliver(0, 1))
    logs[1][-1] = send(1, 1, [2, 3])
    logs[3] = [deliver(1, 1), send(3, 1, [2])]
    verdict = check(logs)
    assert verdict.faults == ("order",)
    assert verdict.violations()[0].cause == (0, 1)
    assert verdict.count("loss") == 1


def test_losses_are_told_in_the_headline_and_nowhere_else() -> None:
    verdict = check(triangle(deliver(1, 1)))
    assert verdict.explain() == [
        "valid: 3 messages, 2 deliveries, 3 nodes, 1 of 3 deliveries lost (33.33%)"
    ]
    told = verdict.to_json()
    assert (told["optimistic"], told["due"], told["violations"]) == (True, 3, [])
    assert (told["counts"]["loss"], told["counts"]["gap"]) == (1, 1)


def test_a_violation_is_told_beside_the_losses() -> None:
    logs = triangle(deliver(1, 1), deliver(0, 1))
    logs[1].append(send(1, 2, [0]))
    headline, violation = check(logs).explain()
    assert "1 of 4 deliveries lost (25.00%); 1 × delivered before" in headline
    assert violation.startswith("node 2 delivered m(1,1) before m(0,1), but")


def invent(seed: int, nodes: int, size: int) -> Logs:
    """Anybody sends to anybody, and delivers what it likes or nothing."""
    rng = random.Random(seed)
    logs: Logs = {node: [] for node in range(nodes)}
    sent: list[Event] = []
    for number in range(size):
        node = rng.randrange(nodes)
        if rng.random() < 0.3 or not sent:
            to = rng.choice([None, rng.sample(range(nodes), rng.randint(0, nodes))])
            sent.append(send(node, number, to))
            logs[node].append(sent[-1])
        else:
            chosen = rng.choice(sent)
            delivery = deliver(chosen.source, chosen.seq)
            if (chosen.to is None or node in chosen.to) and delivery not in logs[node]:
                logs[node].append(delivery)
    return logs


@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 5), size=st.integers(0, 40))
def test_agrees_with_brute_force(seed: int, nodes: int, size: int) -> None:
    logs = invent(seed, nodes, size)
    verdict, wrong = check(logs), by_brute_force(Execution(nodes, logs)).get("order", [])
    assert sorted(verdict.where("order")) == wrong
    assert verdict.verdict == ("invalid" if wrong else "valid")
    assert verdict.deliveries + verdict.count("loss") == verdict.due


class Hopeful(Timestamp):
    """Would rather lose a message than wait."""

    name: ClassVar[str] = "hopeful"
    optimistic: ClassVar[bool] = True


def write_run(path: Path, experiment: str, *delivered: Name, **manifest: Any) -> Path:
    logs = {0: [send(0, 1, [1]), send(0, 2, [1])], 1: [deliver(*name) for name in delivered]}
    write_logs(path, logs, logs, shared=True, **manifest)
    (path / "experiment.toml").write_text(experiment)
    return path


def named(protocol: str) -> str:
    return tomli_w.dumps({"name": "run", "protocol": {"name": protocol}})


@pytest.fixture
def hopeful(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(PROTOCOLS, "hopeful", Hopeful)
    return named("hopeful")


def test_a_run_is_judged_by_what_its_protocol_promises(tmp_path: Path, hopeful: str) -> None:
    late = write_run(tmp_path / "late", hopeful, (0, 2))
    assert check_run(late).optimistic
    assert check_run(late).verdict == "valid"
    wrong = write_run(tmp_path / "wrong", hopeful, (0, 2), (0, 1))
    assert check_run(wrong).verdict == "invalid"


@pytest.mark.parametrize("text", [named("timestamp"), named("?"), "", "[", "protocol = 3\n"])
def test_a_run_of_any_other_protocol_is_judged_strictly(tmp_path: Path, text: str) -> None:
    verdict = check_run(write_run(tmp_path / "run", text, (0, 2)))
    assert (verdict.optimistic, verdict.verdict) == (False, "invalid")
    for file in ("experiment.toml", "manifest.json"):
        (tmp_path / "run" / file).unlink()
        assert not check_run(tmp_path / "run").optimistic


def test_the_manifest_says_what_was_promised_and_no_protocol_is_asked(tmp_path: Path) -> None:
    promises = {"optimistic": True, "local_groups": []}
    late = write_run(tmp_path / "late", named("timestamp"), (0, 2), promises=promises)
    assert check_run(late).verdict == "valid"
    strict = {**promises, "optimistic": False}
    lost = write_run(tmp_path / "lost", named("cluster"), (0, 2), promises=strict)
    assert check_run(lost).verdict == "invalid"


def test_the_command_shows_the_share(tmp_path: Path, hopeful: str, testbed: CommandLine) -> None:
    said = testbed("check", write_run(tmp_path / "run", hopeful, (0, 2)))
    assert "1 of 2 deliveries lost (50.00%)" in said.out
