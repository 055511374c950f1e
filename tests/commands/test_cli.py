"""The commands, as a person or a script meets them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from testbed.cli import COMMANDS, main
from testbed.commands.protocols import flowing
from testbed.errors import UserError
from tests.command_line import CommandLine
from tests.experiments import SMALL

QUICK = ("--no-digest",)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(tomli_w.dumps(SMALL))
    return file


def run_small(small: Path, testbed: CommandLine) -> list[Path]:
    said = testbed("run", small, *QUICK, "--runs", small.parent / "runs", "--json")
    return [Path(run["directory"]) for run in said.json()]


def test_run_shows_the_figures_and_where_the_results_are(small: Path, testbed: CommandLine) -> None:
    out = testbed("run", small, *QUICK, "--runs", small.parent / "runs").out
    assert "overlay" in out
    assert "timestamp" in out
    assert out.count("valid") == 2
    assert out.count("results: ") == 2


def test_a_run_directory_is_complete(small: Path, testbed: CommandLine) -> None:
    overlay, timestamp = run_small(small, testbed)
    assert overlay != timestamp
    manifest = json.loads((overlay / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert (manifest["engine"], manifest["protocol"]) == ("simulate", "overlay")
    assert manifest["verdict"] == "valid"
    assert {"schema", "testbed", "started", "ended", "versions", "command"} <= set(manifest)
    network = json.loads((overlay / "network.json").read_text())
    assert len(network["nodes"]) == 8
    assert {"a", "b", "delay_ns", "bandwidth_bps"} <= set(network["links"][0])
    summary = json.loads((timestamp / "summary.json").read_text())
    assert summary["deliveries"] == 3 * 4 * 8
    assert all(not isinstance(value, dict | list) for value in summary.values())
    assert (overlay.parent / "latest").resolve() == timestamp.resolve()
    assert not list(overlay.rglob("*.part"))


def test_a_run_can_be_run_again_from_its_directory(small: Path, testbed: CommandLine) -> None:
    first = run_small(small, testbed)[1]
    said = testbed("run", first / "experiment.toml", *QUICK, "--runs", small.parent, "--json")
    again = Path(said.json()[0]["directory"])
    events = "events/nodes.jsonl"
    assert (first / events).read_bytes() == (again / events).read_bytes()


def test_check_finds_a_run_valid_and_a_tampered_one_invalid(
    small: Path, testbed: CommandLine
) -> None:
    _, run = run_small(small, testbed)
    assert "valid" in testbed("check", run).out
    log = run / "events" / "nodes.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    mine = [i for i, line in enumerate(lines) if '"node":7,"event":"deliver"' in line]
    lines[mine[0]], lines[mine[-1]] = lines[mine[-1]], lines[mine[0]]
    log.write_text("".join(lines))
    verdict = testbed("check", run, "--json", status=1).json()[str(run)]
    assert verdict["verdict"] == "invalid"


def test_check_refuses_what_is_no_run(small: Path, testbed: CommandLine, tmp_path: Path) -> None:
    run, _ = run_small(small, testbed)
    assert "no such run directory" in testbed("check", tmp_path / "nowhere", status=2).err
    assert "not a run directory" in testbed("check", tmp_path, status=2).err
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "schema": 99}))
    assert "schema 99" in testbed("check", run, status=2).err
    (run / "manifest.json").write_text("{")
    assert "cannot be read" in testbed("check", run, status=2).err


@pytest.mark.parametrize("suffix", [".png", ".svg", ".alt"])
def test_topology_writes_what_it_is_asked_for(
    small: Path, suffix: str, testbed: CommandLine
) -> None:
    output = small.with_suffix(suffix)
    figures = testbed("topology", small, "-o", output, "--json").json()
    assert figures["network"]["nodes"] == figures["overlay"]["nodes"] == 8
    assert figures["overlay"]["node_connectivity"] == 3
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".alt": b"GRAPH"}[suffix]
    assert output.read_bytes().startswith(start)


def test_topology_lists_links(small: Path, testbed: CommandLine) -> None:
    links = testbed("topology", small, "--links", "--json").json()["links"]
    assert len(links) == testbed("topology", small, "--json").json()["network"]["links"]
    assert links == sorted(links, key=lambda link: link["link"])
    (a, b), delay = links[0]["link"], links[0]["delay_ms"]
    assert re.search(rf"^{a} – {b} +{delay:.3f} ", testbed("topology", small, "--links").out, re.M)


def test_topology_refuses_other_formats(small: Path, testbed: CommandLine) -> None:
    assert ".png" in testbed("topology", small, "-o", "graph.gif", status=2).err


def test_protocols_are_listed(testbed: CommandLine) -> None:
    listed = {p["name"]: p for p in testbed("protocols", "--json").json()}
    assert listed["overlay"]["needs_overlay"]
    assert listed["timestamp"]["settings"]["multicast"]["default"] == "network"
    told = testbed("protocols", "timestamp").out
    assert "Fig. 1" in told
    assert "one for each" in told  # what a setting means
    assert "\nCost: 32 + 4n + d bytes" in told


def test_broken_protocols_are_explained_too(testbed: CommandLine) -> None:
    assert "broken-off-by-one" in testbed("protocols").out
    assert "Broken rule" in testbed("protocols", "broken-off-by-one").out
    assert "broken-printed-ring, broken-printed-tickets" in testbed("protocols").out
    assert "errata/tickets.toml" in testbed("protocols", "broken-printed-tickets").out
    assert "did you mean 'timestamp'?" in testbed("protocols", "timestmp", status=2).err


def test_a_docstring_flows_but_for_lists_and_headings() -> None:
    text = "One.\n\nTwo\nthree\n- four\n  five\nCost: six\nseven"
    assert flowing(text) == "One.\n\nTwo three\n- four\n  five\nCost: six seven"


def test_bad_input_is_one_sentence_and_status_2(small: Path, testbed: CommandLine) -> None:
    small.write_text(tomli_w.dumps({**SMALL, "protocol": {"name": "overlord"}}))
    error = testbed("run", small, *QUICK, "--runs", small.parent / "runs", status=2).err
    assert error.startswith(f"testbed: {small}: protocol.name = 'overlord'")
    assert error.count("\n") == 1
    assert not (small.parent / "runs").exists()


def test_bare_packets_are_for_the_simulator(small: Path, testbed: CommandLine) -> None:
    small.write_text(tomli_w.dumps({**SMALL, "transport": {"framing": "bare"}}))
    said = testbed("run", small, "--engine", "virtual", "--runs", small.parent, status=2)
    assert "transport.framing = 'bare' is for the simulator" in said.err


def test_doctor_tells_what_mends_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    abilities = {ability["name"]: ability for ability in found["abilities"]}
    assert not abilities["root"]["ok"]
    assert abilities["root"]["remedy"] == "run with sudo"
    assert found["engine"] in ("virtual", "simulate")
    assert {
        "netem",
        "Open vSwitch",
        "Java",
        "virtual-time kernel",
        "free memory",
        "free disk",
    } <= set(abilities)
    main(["doctor"])
    assert "run with sudo" in capsys.readouterr().out


def test_auto_says_why_or_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.engines import choose_engine, needs

    lacks, has = needs.Ability("netem", False, ""), needs.Ability("anything", True, "")
    for name in ("root", "mininet", "openvswitch", "netem", "virtual_kernel"):
        monkeypatch.setattr(needs, name, lambda: has)
    assert choose_engine("auto")[0] == "mininet"
    monkeypatch.setattr(needs, "netem", lambda: lacks)
    assert choose_engine("auto") == ("virtual", "Mininet on this kernel lacks netem")
    monkeypatch.setattr(needs, "virtual_kernel", lambda: lacks)
    with pytest.raises(UserError, match=r"lacks netem.*scripts/setup.*--engine simulate"):
        choose_engine("auto")
    assert choose_engine("simulate")[0] == "simulate"


def test_where_only_root_is_missing_sudo_is_the_next_step(
    testbed: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from testbed.engines import needs

    has = needs.Ability("anything", True, "")
    for name in ("mininet", "openvswitch", "netem"):
        monkeypatch.setattr(needs, name, lambda: has)
    monkeypatch.setattr(needs, "virtual_kernel", lambda: needs.Ability("kernel", False, ""))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    checkout = Path(needs.__file__).parents[2]
    monkeypatch.chdir(checkout)
    said = testbed("doctor", status=2).out
    assert 'engine "auto" runs nothing here' in said
    assert "lacks kernel: run with sudo, or use --engine simulate" in said
    assert "next: sudo scripts/run, or" in said
    monkeypatch.chdir(tmp_path)
    assert f"next: sudo {checkout}/scripts/run, or" in testbed("doctor", status=2).out


def test_the_virtual_engine_is_for_x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.engines import needs

    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    kernel = needs.virtual_kernel()
    assert not kernel.ok
    assert kernel.detail == "for x86-64 only, and this is aarch64"
    assert "mininet" in kernel.remedy


def test_the_doctor_finds_what_an_ordinary_users_path_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from testbed.engines import needs

    here = needs.openvswitch(), needs.netem()
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    assert (needs.openvswitch(), needs.netem()) == here


def test_no_space_left_leaves_a_run_that_says_so(
    small: Path, testbed: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/dev/full stands for a full disk."""
    monkeypatch.setattr("testbed.engines.simulate.engine.EventLog", full_disk)
    said = testbed("run", small, *QUICK, "--runs", small.parent / "runs", status=2)
    assert "no space left" in said.err
    (run,) = (p for p in (small.parent / "runs" / "small").iterdir() if not p.is_symlink())
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "No space left" in manifest["error"]
    assert not (run / "summary.json").exists()


def full_disk(_: Path) -> Any:
    from testbed.runs.events import EventLog

    return EventLog(Path("/dev/full"))


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_explains(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([*command.split(), "--help"])
    assert exit_.value.code == 0
    assert len(capsys.readouterr().out) > 200
