"""Coverage of a protocol's table of states: what experiments reach, and where later ones are aimed."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from testbed.commands import fuzz as command
from testbed.fuzz import Batch, Origin, Tally, attempt, batches, draw, rounds, try_batch
from testbed.fuzz.coverage import Coverage, states
from testbed.protocols import PROTOCOLS, Effects, Timestamp, Transition

IDLE, BUSY, WORN, GONE = "idle", "busy", "worn out", "gone"
ROWS = (
    Transition(IDLE, "begin", BUSY),
    Transition(BUSY, "rest", IDLE),
    Transition(BUSY, "tire", WORN),
    Transition(GONE, "return", IDLE),
)
TIRING_NS = 5_000_000


class Worker(Timestamp):
    """Timestamp with a table: what arrives makes a process busy or idle, a late one tires it."""

    name: ClassVar[str] = "worker"
    transitions: ClassVar[tuple[Transition, ...]] = ROWS
    state, since = IDLE, 0

    def receive(self, message: Any, sender: int, now: int) -> Effects:
        event = {IDLE: "begin", BUSY: "rest"}.get(self.state)
        if self.state == BUSY and now - self.since > TIRING_NS:
            event = "tire"
        for row in ROWS:
            if (row.state, row.event) == (self.state, event):
                self.state, self.since = row.next, now
                yield row.note(of=sender)
        yield from super().receive(message, sender, now)


@pytest.fixture(autouse=True)
def _worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, Worker.name, Worker)


def test_a_trial_tells_which_rows_its_log_shows() -> None:
    trial = attempt(draw(Worker, 2))
    assert trial is not None
    assert trial.reached
    assert trial.reached <= set(ROWS[:3])
    plain = attempt(draw(PROTOCOLS["timestamp"], 2))
    assert plain is not None
    assert plain.reached == frozenset()


def test_rows_that_are_missing_are_aimed_at_from_the_states_that_were_reached() -> None:
    coverage = Coverage([ROWS[0], ROWS[1], ROWS[0]])
    assert coverage.missing(ROWS) == [ROWS[2], ROWS[3]]
    assert coverage.targets(ROWS) == [BUSY]  # nobody has been gone
    assert states(coverage) == [IDLE, BUSY]
    assert states(ROWS) == [IDLE, BUSY, WORN, GONE]
    tally = Tally(Worker.name, coverage=coverage)
    (batch,) = batches([tally], range(1, 5))
    assert [origin.state for origin in batch.origins] == [None, BUSY, None, BUSY]
    assert [origin.seed for origin in batch.origins] == [1, 2, 3, 4]


def test_a_seed_and_a_state_are_one_experiment_whose_faults_strike_there() -> None:
    for seed in range(1, 9):
        document = draw(Worker, seed, state=WORN)
        assert document == draw(Worker, seed, state=WORN) != draw(Worker, seed)
        assert document["name"] == f"fuzz-worker-{seed}-worn-out"
        whens = [fault.get("when", {}) for fault in document["fault"]]
        assert {when["event"] for when in whens if "event" in when} <= {"tire"}
    aimed = [draw(Worker, seed, state=WORN)["fault"] for seed in range(1, 21)]
    assert sum(any("event" in f.get("when", {}) for f in faults) for faults in aimed) > 14


def test_seeds_are_tried_in_rounds_only_where_there_is_a_table() -> None:
    assert rounds(["timestamp"], range(1, 201)) == [range(1, 201)]
    parts = rounds(["timestamp", "worker"], range(1, 201))
    assert parts == [range(1, 51), range(51, 101), range(101, 151), range(151, 201)]
    assert rounds(["worker"], range(1, 11)) == [range(1, 11)]


def test_what_is_reached_is_added_up() -> None:
    total = Tally(Worker.name)
    for batch in batches([total], range(1, 31)):
        total.add(try_batch(batch))
    assert set(total.coverage) == set(ROWS[:3])
    assert total.coverage[ROWS[0]] > 20
    again = try_batch(Batch(Worker.name, tuple(map(Origin, range(1, 21)))))
    assert again == try_batch(Batch(Worker.name, tuple(map(Origin, range(1, 21)))))


def test_the_command_tells_what_was_reached(tmp_path: Path, capsys: Any) -> None:
    def options(as_json: bool) -> Namespace:
        chosen = {"protocol": ["worker", "rst"], "seeds": 30, "first_seed": 1, "master": None}
        return Namespace(**chosen, runs=tmp_path, json=as_json, large=False)

    assert command.command(options(False)) == 0
    told = capsys.readouterr().out
    assert "worker: 3 of 4 states and 3 of 4 transitions reached; not reached:" in told
    assert "gone, return → idle" in told
    assert "rst:" not in told
    assert command.command(options(True)) == 0
    worker, rst = json.loads(capsys.readouterr().out)
    assert (worker["transitions"], worker["not_reached"]) == (4, [["gone", "return", "idle"]])
    assert (rst["transitions"], rst["not_reached"]) == (0, [])
