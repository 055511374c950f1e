"""A scenario: all that follows from file and seed, the same whoever works it out, and only once."""

from pathlib import Path
from typing import Any

import pytest

from testbed.engines import load_engine
from testbed.errors import UserError
from testbed.experiment import ENGINES, Experiment, Network, Scenario, parse
from testbed.faults import FaultSchedule
from tests.command_line import CommandLine

DOCUMENT: dict[str, Any] = {
    "name": "scenario",
    "protocol": [{"name": "overlay"}, {"name": "timestamp"}],
    "topology": {"model": "pure-random", "nodes": 8, "edge_probability": 0.5},
    "workload": {"model": "poisson", "senders": 3, "duration_ms": 50, "warm_up_messages": 2},
    "fault": [{"kind": "crash", "per_s": 300, "for_ms": 1}],
}


def experiment(**changes: Any) -> Experiment:
    return parse({**DOCUMENT, **changes}, Path("scenario.toml"))[0]


def onsets(schedule: FaultSchedule) -> list[int]:
    """When faults begin and end, as a schedule tells them one after the other."""

    class Nobody:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

    found = []
    while (at := schedule.next()) is not None:
        found.append(at)
        schedule.advance(at, Nobody())
    return found


def test_what_crosses_into_a_guest_makes_the_same_scenario() -> None:
    here = Scenario.of(experiment())
    network = Network.from_json(here.network.to_json())
    there = Scenario.on(experiment(), network)
    assert there.sends == here.sends
    assert there.counted_from == here.counted_from == here.sends[2].at
    assert (there.last_send, there.most_deliveries) == (here.last_send, here.most_deliveries)


def test_every_run_gets_a_fresh_schedule_of_the_same_faults() -> None:
    scenario = Scenario.of(experiment())
    first = onsets(scenario.fault_schedule())
    assert len(first) > 2
    assert onsets(scenario.fault_schedule()) == first
    assert onsets(Scenario.of(experiment(seed=2)).fault_schedule()) != first


def test_processes_draw_from_streams_of_their_own_and_an_incarnation_has_another() -> None:
    scenario = Scenario.of(experiment())

    def drawn(me: int, incarnation: int = 0) -> float:
        return scenario.process(me, incarnation).place.rng.random()

    assert drawn(3) == drawn(3)
    assert len({drawn(3), drawn(4), drawn(3, 1), drawn(3, 2)}) == 4


def test_settings_that_do_not_fit_are_refused_before_anything_is_written(
    tmp_path: Path, testbed: CommandLine
) -> None:
    file = tmp_path / "x.toml"
    file.write_text(
        'name = "x"\n[protocol]\nname = "cluster"\ncoordinators = 99\n'
        '[topology]\nmodel = "pure-random"\nnodes = 16\n'
    )
    testbed("run", file, "--runs", tmp_path / "runs", "--no-digest", status=2)
    assert not (tmp_path / "runs").exists()


def test_an_engine_says_itself_what_it_refuses() -> None:
    unframed = Scenario.of(experiment(transport={"framing": "bare"}))
    for name in ENGINES:
        reason = load_engine(name).refuses(unframed)
        assert (reason is None) == (name == "simulate")
        assert reason is None or "transport.framing = 'bare' is for the simulator" in reason


def test_auto_looks_at_the_machine_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: CommandLine
) -> None:
    from testbed.commands import run as command
    from testbed.engines import needs

    looks: list[str] = []

    def nothing_missing() -> list[needs.Ability]:
        looks.append("")
        return []

    monkeypatch.setattr(needs, "emulation_in_real_time", nothing_missing)
    ran: list[str] = []

    def pretend(point: Experiment, *_: Any, **__: Any) -> None:
        ran.append(point.engine)
        if len(ran) == 2:
            raise UserError("that is all")

    both = parse({**DOCUMENT, "engine": "auto"}, tmp_path)
    monkeypatch.setattr(command, "load", lambda *_, **__: both)
    monkeypatch.setattr(command, "run_experiment", pretend)
    said = testbed("run", "x.toml", status=2)
    assert ran == ["mininet", "mininet"]
    assert len(looks) == 1
    assert "engine mininet" in said.out
