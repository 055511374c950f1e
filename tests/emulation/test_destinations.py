"""Messages to some of the processes, and to groups, on sixteen emulated hosts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.experiment import Experiment, build_network, parse, read_document
from testbed.packets.pcap import open_captures
from tests.experiments import run

pytestmark = [pytest.mark.emulation, pytest.mark.usefixtures("kernel")]

FILES = Path(__file__).parents[2] / "scripts" / "experiments"
SAME = ("multicasts", "deliveries", "copies", "bytes", "control_bytes", "hops", "wire_bytes")
Figures = dict[str, Any]


def experiments(file: str, **workload: Any) -> list[Experiment]:
    document = read_document(FILES / file)
    document["workload"] |= workload
    return parse({**document, "engine": "virtual"}, FILES / file)


def emulate(what: list[Experiment], runs: Path) -> list[tuple[Path, Figures]]:
    """Causal order must hold, and what is counted is what the simulator counts."""
    found = []
    for experiment in what:
        emulated = run(experiment, runs)
        figures = emulated.summary
        assert emulated.verdict.ok
        assert figures["fidelity"] == "exact"
        simulated = run(replace(experiment, engine="simulate"), runs).summary
        assert {key: figures[key] for key in SAME} == {key: simulated[key] for key in SAME}
        found.append((emulated.path, figures))
    return found


def stamps(run: Path, kind: int) -> set[int]:
    """How many bytes of control information the captured packets of a kind have."""
    found: set[int] = set()
    for capture in open_captures((run / "packets").glob("*.pcap")):
        for part in capture.parts(1 << 30):
            for columns in capture.columns(part, ("kind", "control")):
                ours = np.ma.getmaskarray(columns["kind"])
                chosen = ~ours & (columns["kind"].filled(-1) == kind)
                found |= set(columns["control"][chosen].tolist())
    return found


def test_sets_of_destinations(tmp_path: Path) -> None:
    rst, ks, ks_prime = emulate(experiments("subsets.toml", messages=120), tmp_path)
    assert rst[1]["wire_bytes"] > ks[1]["wire_bytes"] > ks_prime[1]["wire_bytes"]


def test_groups_and_what_their_stamps_take_in_captured_packets(tmp_path: Path) -> None:
    what = experiments("groups.toml", duration_ms=100)
    plain, timer, bss = emulate(what, tmp_path)
    members = [len(group) for group in build_network(what[0]).groups.values()]
    assert len(members) == 6
    for path, _ in (plain, timer):
        assert stamps(path, kind=1) == {4 * len(members)}
        assert stamps(path, kind=2) == {4}  # a resynch
    assert stamps(bss[0], kind=1) == {4 * sum(members)}
    assert plain[1]["resynch_copies"] > timer[1]["resynch_copies"] > 0
    assert plain[1]["delay_ms_mean"] > bss[1]["delay_ms_mean"]
