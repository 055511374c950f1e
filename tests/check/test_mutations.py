"""A verdict belongs to its logs: whatever is done to them afterwards is noticed by everybody."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.hostility.mutations import PROTOCOLS, mutated
from testbed.check import check_run
from testbed.commands.compare import Compared
from testbed.runs.directory import RunDirectory
from tests.experiments import SMALL, parsed, run

EACH = 40  # mutations, drawn anew for each protocol


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_mutation_of_the_logs_goes_unnoticed(protocol: str, tmp_path: Path) -> None:
    path = run(parsed(SMALL, protocol={"name": protocol}), tmp_path).path
    assert check_run(path).verdict == RunDirectory(path).verdict == "valid"
    (log,) = RunDirectory(path).event_logs
    original = log.read_bytes()
    rng = random.Random(protocol)
    for _ in range(EACH):
        mutation, changed = mutated(original, rng)
        log.write_bytes(changed)
        assert check_run(path).verdict != "valid", mutation
        assert Compared.read(path).summary["verdict"] == "stale", mutation


def test_evidence_that_is_gone_or_added_is_noticed(tmp_path: Path) -> None:
    path = run(parsed(SMALL, protocol={"name": "rst"}), tmp_path / "runs").path
    spoils: list[Callable[[RunDirectory], object]] = [
        lambda copy: copy.event_logs[0].unlink(),
        lambda copy: copy.network_file.write_text(copy.network_file.read_text() + " "),
        lambda copy: shutil.copy(copy.event_logs[0], copy.event_log(3)),
        lambda copy: (copy.packets / "a.pcap").write_bytes(b""),
    ]
    for spoil in spoils:
        copy = shutil.copytree(path, tmp_path / "copy")
        assert check_run(copy).verdict == "valid"
        spoil(RunDirectory(copy))
        assert check_run(copy).verdict != "valid"
        assert RunDirectory(copy).verdict == "stale"
        shutil.rmtree(copy)


def test_logs_without_a_message_prove_nothing(tmp_path: Path) -> None:
    path = run(parsed(SMALL, protocol={"name": "rst"}), tmp_path).path
    old = RunDirectory(path)
    del old.manifest["evidence"]  # as versions wrote it that took no hashes
    old.write_manifest()
    assert RunDirectory(path).verdict == "valid"
    for log in old.event_logs:
        log.write_bytes(b"")
    assert check_run(path).verdict == "unknown"
