"""The daisy on sixteen emulated hosts, one of whose servers is killed in the middle."""

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.experiment import load
from tests.experiments import run

pytestmark = [pytest.mark.emulation, pytest.mark.usefixtures("kernel")]

FILE = Path(__file__).parents[2] / "scripts" / "experiments" / "daisy.toml"


@pytest.mark.parametrize("inside", ["all", "recipients", "server"])
def test_a_server_is_killed_and_nothing_is_lost(inside: str, tmp_path: Path) -> None:
    (what,) = load(FILE, engine="virtual")
    what = replace(what, settings=replace(what.settings, inside=inside))
    emulated = run(what, tmp_path)
    assert emulated.verdict.ok, emulated.verdict.explain(3)
    assert emulated.manifest["fidelity"]["verdict"] == "exact"
    figures = emulated.summary
    assert figures["crashes"] == 1
    simulated = run(replace(what, engine="simulate"), tmp_path).summary
    for key in ("multicasts", "deliveries"):
        assert figures[key] == simulated[key]
    patience = what.settings.patience_ms
    assert patience / 2 < figures["recovery_ms_max"] < 4 * patience
    assert figures["recovery_ms_max"] == pytest.approx(simulated["recovery_ms_max"], rel=0.01)
    assert figures["delay_within_groups_ms_mean"] < figures["delay_across_groups_ms_mean"]
