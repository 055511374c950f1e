"""The daisy on sixteen emulated hosts, one of whose servers is killed in the middle."""

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.experiment import load
from tests.emulation.conftest import CHECKOUT, emulated

pytestmark = [pytest.mark.emulation, pytest.mark.usefixtures("kernel")]

FILE = CHECKOUT / "scripts" / "experiments" / "daisy.toml"


@pytest.mark.parametrize("inside", ["all", "recipients", "server"])
def test_a_server_is_killed_and_nothing_is_lost(inside: str, tmp_path: Path) -> None:
    (what,) = load(FILE, engine="virtual")
    what = replace(what, settings=replace(what.settings, inside=inside))
    done = emulated(what, tmp_path, "multicasts", "deliveries")
    figures, simulated = (run.summary for run in done)
    assert figures["crashes"] == 1
    patience = what.settings.patience_ms
    assert patience / 2 < figures["recovery_ms_max"] < 4 * patience
    assert figures["recovery_ms_max"] == pytest.approx(simulated["recovery_ms_max"], rel=0.01)
    assert figures["delay_within_groups_ms_mean"] < figures["delay_across_groups_ms_mean"]
