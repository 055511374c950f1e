"""The oracle against a second oracle by brute force, and weakened ones that this must find out."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.check import APART, VIOLATIONS, check_events, check_run, history, judge
from tests.check.brute_force import Brute, Execution, by_brute_force, executions, invent, sample
from tests.check.events import Found, found, write_run

THOROUGH = settings(
    max_examples=350, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def by_oracle(execution: Execution) -> Found:
    return found(check_events(range(execution.nodes), execution.logs))


@given(executions())
@THOROUGH
def test_agrees_with_brute_force(execution: Execution) -> None:
    assert by_oracle(execution) == by_brute_force(execution)


@given(executions(lies=True))
@THOROUGH
def test_agrees_with_brute_force_on_impossible_logs(execution: Execution) -> None:
    assert by_oracle(execution) == by_brute_force(execution)


@pytest.mark.parametrize("lies", [False, True])
def test_paths_are_real_and_shortest(lies: bool) -> None:
    for seed in range(80):
        check_paths(invent(seed, nodes=3 + seed % 5, size=40 + seed, lies=lies))


def check_paths(execution: Execution) -> None:
    verdict, brute = check_events(range(execution.nodes), execution.logs), Brute(execution)
    violations = verdict.violations(limit=10**6)
    assert len(violations) == verdict.count("order") + verdict.count("gap")
    for violation in violations:
        causes = brute.causes(violation.kind, violation.process, violation.effect)
        names = [step.cause for step in violation.path] + [violation.path[-1].effect]
        assert names[0] == violation.cause
        assert names[0] in causes
        assert names[-1] == violation.effect
        assert len(violation.path) == brute.relays(causes, violation.effect)
        for step, cause, effect in zip(violation.path, names, names[1:], strict=False):
            assert (step.process, step.effect) == (effect[0], effect)
            assert brute.at_hand(cause, effect)
            assert (step.event == "send") == (cause[0] == step.process)


@given(executions(), st.booleans())
@settings(THOROUGH, max_examples=40)
def test_files_and_memory_agree(execution: Execution, shared: bool) -> None:
    in_memory = check_events(range(execution.nodes), execution.logs)
    with tempfile.TemporaryDirectory() as directory:
        run = write_run(Path(directory) / "run", range(execution.nodes), execution.logs, shared)
        from_files = check_run(run)
    if not in_memory.messages:
        assert from_files.verdict != "valid"
    elif not from_files.missing:  # a lone log in a lone file may have lost its company
        assert from_files.to_json() == in_memory.to_json()


@given(executions())
@settings(THOROUGH, max_examples=40)
def test_one_log_one_verdict(execution: Execution) -> None:
    nodes, logs = execution
    shuffled = dict(sorted(logs.items(), reverse=True))
    one, other = check_events(range(nodes), logs), check_events(reversed(range(nodes)), shuffled)
    assert one.to_json() == other.to_json()
    assert one.explain() == other.explain()


def without_transitivity(links: history.Links, sender: Any, senders: int) -> tuple[Any, Any]:
    """What a sender itself had delivered or sent, and nothing that lies further back."""
    none_yet = np.searchsorted(sender, np.arange(senders))
    rows = np.tile(none_yet, (len(sender), 1)).astype(np.int32)
    rows[np.arange(len(sender)), sender] = np.arange(len(sender))
    for cause, effect in zip(links.cause, links.effect, strict=True):
        later = (sender == sender[effect]) & (np.arange(len(sender)) >= effect)
        rows[later, sender[cause]] = np.maximum(rows[later, sender[cause]], cause)
    return rows, np.ones(len(sender), bool)


def to_everybody(self: history.History, node: int) -> Any:
    mask = np.ones(self.slots, bool)
    mask[[slot for slot, name in enumerate(self.names[: self.slots]) if name == (-1, -1)]] = False
    return mask


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "no transitivity": (history, "_rows", without_transitivity),
    "destinations ignored": (history.History, "addressed_to", to_everybody),
    "last message of a sender only": (judge.Judge, "running_maximum", lambda self, values: values),
    "senders mixed up": (
        judge.Judge,
        "running_maximum",
        lambda self, values: np.maximum.accumulate(values),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_weakened_oracle_is_found_out(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def disagree(execution: Execution) -> bool:
        return by_oracle(execution) != by_brute_force(execution)

    monkeypatch.setattr(*MUTANTS[mutant])
    caught = [execution for execution in sample(60) if disagree(execution)]
    monkeypatch.undo()
    assert caught
    assert not any(disagree(execution) for execution in caught)


def test_every_kind_is_generated() -> None:
    kinds = {kind for execution in sample(200, lies=True) for kind in by_oracle(execution)}
    assert kinds == {*VIOLATIONS, *APART}
