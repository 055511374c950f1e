"""Messages to some of the processes, and to groups, on sixteen emulated hosts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.experiment import Experiment, build_network, parse, read_document
from testbed.packets.pcap import open_captures
from tests.emulation.conftest import CHECKOUT, emulated

pytestmark = [pytest.mark.emulation, pytest.mark.usefixtures("kernel")]

FILES = CHECKOUT / "scripts" / "experiments"


def experiments(file: str, **workload: Any) -> list[Experiment]:
    document = read_document(FILES / file)
    document["workload"] |= workload
    return parse({**document, "engine": "virtual"}, FILES / file)


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
    what = experiments("subsets.toml", messages=120)
    rst, ks, ks_prime = (emulated(each, tmp_path)[0].summary["wire_bytes"] for each in what)
    assert rst > ks > ks_prime


def test_groups_and_what_their_stamps_take_in_captured_packets(tmp_path: Path) -> None:
    what = experiments("groups.toml", duration_ms=100)
    document = read_document(FILES / "groups.toml") | {"engine": "virtual"}
    document["protocol"] = [{"name": "one-integer", "multicast": "network"}]
    document["workload"]["duration_ms"] = 100
    what += parse(document, FILES / "groups.toml")
    plain, timer, bss, one = (emulated(each, tmp_path)[0] for each in what)
    members = [len(group) for group in build_network(what[0]).groups.values()]
    assert len(members) == 6
    for run in (plain, timer):
        assert stamps(run.path, kind=1) == {4 * len(members)}
        assert stamps(run.path, kind=2) == {4}  # a resynch
    assert stamps(bss.path, kind=1) == {4 * sum(members)}
    assert stamps(one.path, kind=1) == stamps(one.path, kind=2) == {4}
    assert plain.summary["resynch_copies"] > timer.summary["resynch_copies"] > 0
    assert plain.summary["delay_ms_mean"] > bss.summary["delay_ms_mean"]
