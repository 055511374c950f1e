"""What all reproductions share, and how they are started."""

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.reproductions.chapter import Cell, Chapter, Plot, Reproduction, Table
from scripts.reproductions.claims import NO, YES, Judged
from scripts.reproductions.command import main
from scripts.reproductions.measuring import measured
from scripts.reproductions.running import Effort, measure
from scripts.reproductions.show import show
from testbed.errors import UserError
from testbed.experiment import Experiment, parse
from testbed.run import run_experiment

ROOT = Path(__file__).parents[2]
REPRODUCTIONS = ["all", "baldoni", "chandra", "errata", "friedman", "gidenstam", "mostefaoui"]
BENCHMARKS = [
    *("diagram", "digest", "emulation", "fuzz", "grading", "ks", "page", "simulator", "sweep")
]


@pytest.mark.parametrize(
    ("command", "names"), [("reproduce", REPRODUCTIONS), ("bench", BENCHMARKS)]
)
def test_without_a_name_a_script_lists_the_names(command: str, names: list[str]) -> None:
    start = [ROOT / "scripts" / command]
    result = subprocess.run(start, check=False, capture_output=True, text=True)
    assert result.returncode == 2
    usage, *listed = result.stderr.splitlines()
    assert usage == f"usage: scripts/{command} NAME; NAME is one of:"
    assert listed == names


@pytest.mark.parametrize(
    ("module", "command"),
    [
        *((f"reproductions.{name}", f"reproduce {name}") for name in REPRODUCTIONS[1:]),
        ("reproductions.book", "reproduce all"),
        *((f"benchmarks.{name}", f"bench {name}") for name in BENCHMARKS),
        ("searches.fail_over", "fail-over"),
        ("searches.fuzz_long", "fuzz-long"),
    ],
)
def test_every_script_explains_itself(module: str, command: str) -> None:
    start = [sys.executable, "-m", f"scripts.{module}", "--help"]
    result = subprocess.run(start, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.startswith(f"usage: scripts/{command} [-h]")


def paper(reproduce: Callable[[Namespace], Chapter]) -> Reproduction:
    def add_options(parser: ArgumentParser) -> None:
        parser.add_argument("--size", type=int)

    return Reproduction("paper", "A paper.", add_options, reproduce, lambda options: 0, (), ())


def test_an_error_of_the_user_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def reproduce(options: Namespace) -> Chapter:
        raise UserError(f"{options.size} in {options.runs} on {options.master}")

    monkeypatch.setattr(sys, "argv", ["paper", "--size", "3", "--runs", "here"])
    with pytest.raises(SystemExit, match=r"^reproduce: 3 in here on local\[\*\]$"):
        main(paper(reproduce))


def test_what_was_stopped_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reproduce(options: Namespace) -> Chapter:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["paper"])
    with pytest.raises(SystemExit) as ended:
        main(paper(reproduce))
    assert ended.value.code == 130
    assert capsys.readouterr().err == "stopped; the same command goes on from here\n"


def test_a_chapter_is_shown_and_its_plots_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [Judged("§ 1", "[a] < b", "a, b", "any", "1 [2]", verdict) for verdict in (YES, NO)]
    table = Table("t", "Sizes [ms]", ("n", "4"), [["all", Cell("1 ± 2")]], caption="In [ms].")
    plots = [Plot("curve", "A curve.", b"<svg/>", b"png")]
    chapter = Chapter("doe", "Doe", "", "", "two points", "1, 2", "", [table], plots, claims)
    show(chapter, tmp_path)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:5] == [
        "two points; seeds 1, 2",
        "Sizes [ms]",
        "n        4",
        "all  1 ± 2",
        "In [ms].",
    ]
    assert lines[7].split() == ["§", "1", "[a]", "<", "b", "1", "[2]", "yes"]
    assert lines[-2:] == ["2 claims; yes: 1, no: 1", f"plots: {tmp_path}"]
    assert (tmp_path / "curve.svg").read_bytes() == b"<svg/>"


SMALL: dict[str, Any] = {
    "name": "small",
    "topology": {"model": "exponential-channels", "nodes": 5, "mean_ms": 10},
    "workload": {
        **{"model": "random-destinations", "messages": 60, "warm_up_messages": 10},
        **{"mean_interval_ms": 5, "multicast_fraction": 0.5},
    },
}


def small(protocol: str) -> Experiment:
    return parse({**SMALL, "protocol": {"name": protocol}}, Path("small.toml"))[0]


def test_what_is_only_measured_has_the_figures_of_a_run(tmp_path: Path) -> None:
    run = run_experiment(small("ks"), tmp_path, lambda what, done, of: None)
    figures = measured(small("ks"))
    assert figures == {key: run.summary[key] for key in figures}
    assert figures["deliveries"] > 100


def test_what_is_only_measured_is_judged_all_the_same() -> None:
    with pytest.raises(UserError, match="causal order is invalid: 60 messages"):
        measured(small("broken-printed-rst"))


def test_experiments_that_are_measured_are_kept_by_their_name(tmp_path: Path) -> None:
    options = Namespace(runs=tmp_path, master="local[1]", effort=Effort())
    points = {"a": [small("ks"), small("rst")], "b": [small("ks")]}
    first = measure(points, options, lambda experiment: 1)
    assert [row["control_copies"] for row in first["a"]] == [first["b"][0]["control_copies"]] * 2
    kept = (tmp_path / "small.jsonl").read_text(encoding="utf-8")
    assert len(kept.splitlines()) == 1 + 2
    assert measure(points, options, lambda experiment: 1) == first
    assert (tmp_path / "small.jsonl").read_text(encoding="utf-8") == kept
    assert options.effort.runs == 4
    assert options.effort.protocols == {"ks", "rst"}
