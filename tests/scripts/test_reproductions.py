"""What all reproductions share, and how they are started."""

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from scripts.reproductions import Claim, Finding, main, show_claims, verdict
from testbed.errors import UserError

ROOT = Path(__file__).parents[2]
REPRODUCTIONS = ["all", "baldoni", "chandra", "friedman", "gidenstam", "mostefaoui"]
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


def test_a_verdict_is_one_answer_or_one_for_each_setting() -> None:
    assert verdict(True) == verdict([True, True]) == "yes"
    assert verdict(False) == verdict([False, False]) == "[bold]no[/]"
    assert verdict([True, False, True]) == "[bold]2 of 3[/]"
    assert verdict(None) == "unclear"


def test_a_claim_whose_points_were_not_run_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    claims: list[Claim[dict[str, int]]] = [
        Claim(("1", "it is small"), lambda found: Finding(f"{found['it']}", found["it"] < 10)),
        Claim(("2", "it is large"), lambda found: Finding(f"{found['it']}", found["it"] > 10)),
        Claim(("3", "other is small"), lambda found: Finding("", found["other"] < 10)),
        Claim(("4", "its share is small"), lambda found: Finding("", 1 / found["none"] < 10)),
    ]
    show_claims(("section", "claim"), claims, {"it": 3, "none": 0})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["section", "claim", "measured"],
        ["1", "it", "is", "small", "3", "yes"],
        ["2", "it", "is", "large", "3", "no"],
    ]


def test_an_error_of_the_user_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def add_options(parser: ArgumentParser) -> None:
        parser.add_argument("--size", type=int)

    def reproduce(options: Namespace) -> None:
        raise UserError(f"{options.size} in {options.runs} on {options.master}")

    monkeypatch.setattr(sys, "argv", ["paper", "--size", "3", "--runs", "here"])
    with pytest.raises(SystemExit, match=r"^reproduce: 3 in here on local\[\*\]$"):
        main("paper", "A paper.", add_options, reproduce)
