"""The oracle on run directories: logs that are whole, damaged, missing, or no logs at all."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.check import check_events, check_run
from tests.check.events import CRASH, Logs, deliver, found, hold, send, triangle, write_run


@pytest.mark.parametrize("shared", [False, True])
def test_run_directory(tmp_path: Path, shared: bool) -> None:
    logs = triangle(hold(1, 1), deliver(1, 1), deliver(0, 1))
    seen: list[tuple[int, int]] = []
    run = write_run(tmp_path / "run", range(3), logs, shared)
    verdict = check_run(run, lambda done, total: seen.append((done, total)))
    assert verdict.to_json() == check_events(range(3), logs).to_json()
    assert json.loads(json.dumps(verdict.to_json())) == verdict.to_json()
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


BAD_LINES = [
    "not json",
    "[]",
    "3",
    '{"t":1,"event":"deliver","source":0,"seq":1}',
    '{"t":1,"node":77,"event":"deliver","source":0,"seq":1}',
    '{"t":1,"node":true,"event":"deliver","source":0,"seq":1}',
    '{"t":1,"node":2,"source":0,"seq":1}',
    '{"t":1,"node":2,"event":"deliver","source":0}',
    '{"t":1,"node":2,"event":"deliver","source":0,"seq":1.0}',
    '{"t":1,"node":2,"event":"deliver","source":false,"seq":1}',
    '{"t":1.5,"node":2,"event":"deliver","source":0,"seq":1}',
    '{"t":1' + "0" * 30 + ',"node":2,"event":"deliver","source":0,"seq":1}',
    '{"t":1,"node":2,"event":"send","source":2,"seq":1}',
    '{"t":1,"node":2,"event":"send","source":2,"seq":1,"to":[0,77]}',
    '{"t":1,"node":2,"event":"send","source":2,"seq":1,"to":"0"}',
    '{"t":1,"node":0,"event":"deliver","source":0,"seq":1}',  # node 0 has its own file
    '{"t":1,"node":2,"event":"restart"}{"t":1,"node":2,"event":"restart"}',
    "[" * 100_000,
    "\udcff\udcfe",
]


@pytest.mark.parametrize("bad", BAD_LINES, ids=range(len(BAD_LINES)))
def test_bad_line_is_counted_and_leaves_doubt(tmp_path: Path, bad: str) -> None:
    run = write_run(tmp_path / "run", range(3), triangle(deliver(0, 1), deliver(1, 1)))
    with (run / "events" / "h2.jsonl").open("ab") as file:
        file.write(b"\n" + bad.encode(errors="surrogateescape") + b"\n")
    verdict = check_run(run)
    assert (verdict.malformed, verdict.verdict) == (1, "unknown")
    (line,) = verdict.malformed_lines
    assert (line.file, line.line) == ("h2.jsonl", 4)
    assert any(text.startswith("h2.jsonl, line 4: ") for text in verdict.explain())


def test_names_of_any_size_are_names(tmp_path: Path) -> None:
    seq = 10**30
    run = write_run(tmp_path / "run", [0], {0: [send(0, seq), deliver(0, seq), deliver(0, seq)]})
    assert found(check_run(run)) == {"duplicate": [(0, (0, seq))]}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def test_cut_last_line(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", range(3), triangle(deliver(0, 1), deliver(1, 1)))
    cut(run / "events" / "h1.jsonl")  # the send of m(1,1): its delivery is no creation
    verdict = check_run(run)
    assert verdict.verdict == "unknown"
    assert found(verdict) == {"unjudged": [(2, (1, 1))]}
    assert verdict.malformed_lines == (("h1.jsonl", 2, "cut off"),)


def test_last_line_without_newline_is_whole(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", range(3), triangle(deliver(0, 1), deliver(1, 1)))
    file = run / "events" / "h2.jsonl"
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    assert check_run(run).ok


def test_a_killed_node_may_leave_a_cut_line(tmp_path: Path) -> None:
    logs = {0: [send(0, 1, [0, 1]), deliver(0, 1)], 1: [CRASH, deliver(0, 1)]}
    run = write_run(tmp_path / "run", [0, 1], logs)
    cut(run / "events" / "h1.jsonl")
    verdict = check_run(run)
    assert verdict.ok
    assert (verdict.malformed, verdict.damaged) == (1, (1,))


def test_what_a_killed_node_sent_last_may_be_unknown(tmp_path: Path) -> None:
    logs = {0: [CRASH, send(0, 1, [1])], 1: [deliver(0, 1)]}
    run = write_run(tmp_path / "run", [0, 1], logs)
    assert check_run(run).ok
    cut(run / "events" / "h0.jsonl")
    assert (found(check_run(run)), check_run(run).verdict) == (
        {"unjudged": [(1, (0, 1))]},
        "unknown",
    )


def test_silence_in_a_damaged_log_proves_nothing(tmp_path: Path) -> None:
    logs = {0: [send(0, 1, [2]), deliver(0, 9)], 1: [CRASH, CRASH]}
    run = write_run(tmp_path / "run", range(3), logs, shared=True)
    cut(run / "events" / "all.jsonl")
    assert (check_run(run).missing, check_run(run).count("loss")) == ((2,), 0)


def test_proof_stands_in_damaged_logs(tmp_path: Path) -> None:
    logs = triangle(deliver(1, 1), deliver(0, 1), deliver(0, 5))
    run = write_run(tmp_path / "run", range(3), logs)
    cut(run / "events" / "h2.jsonl")
    assert check_run(run).verdict == "invalid"
    assert found(check_run(run)) == {"order": [(2, (1, 1))]}


def test_missing_file_is_doubt_silence_in_a_whole_log_is_loss(tmp_path: Path) -> None:
    logs: Logs = triangle() | {2: []}
    apart = write_run(tmp_path / "apart", range(3), logs)
    assert check_run(apart).verdict == "invalid"
    (apart / "events" / "h2.jsonl").unlink()
    assert (check_run(apart).verdict, check_run(apart).missing) == ("unknown", (2,))
    together = write_run(tmp_path / "together", range(3), logs, shared=True)
    assert found(check_run(together)) == {"loss": [(2, (0, 1)), (2, (1, 1))]}


@pytest.mark.parametrize("network", [None, "", "{}", '{"nodes": 3}', '{"nodes": [{"id": "a"}]}'])
def test_without_a_list_of_nodes_nothing_can_be_judged(tmp_path: Path, network: str | None) -> None:
    run = write_run(tmp_path / "run", [0], {0: [send(0, 1), deliver(0, 1)]})
    (run / "network.json").unlink()
    if network is not None:
        (run / "network.json").write_text(network)
    verdict = check_run(run)
    assert verdict.verdict == "unknown"
    assert "network.json" in verdict.explain()[1]
    assert verdict.to_json()["problems"]


def test_no_events_at_all(tmp_path: Path) -> None:
    assert check_run(write_run(tmp_path / "run", [0, 1], {})).verdict == "unknown"


@given(st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_survived(junk: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = write_run(Path(directory) / "run", [0, 1], {0: [send(0, 1), deliver(0, 1)]})
        (run / "events" / "h1.jsonl").write_bytes(junk)
        assert check_run(run).verdict in ("unknown", "invalid")
