"""A run while it goes: what moves is told, in a line now and then where there is no terminal."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from testbed.commands import browser
from testbed.commands.progress import Bars, WithLevels
from testbed.engines.simulate import links
from testbed.progress import LEVEL
from testbed.run import run_experiment
from testbed.sweep.moving import Moving, told
from tests.experiments import SMALL, parsed
from tests.report.digested import write_run


def test_what_moves_is_told_beside_the_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(links, "EVENTS_PER_TICK", 16)
    told: dict[str, list[int]] = {}
    experiment = parsed(SMALL, protocol={"name": "timestamp"})
    done = run_experiment(
        experiment, tmp_path, lambda name, level, of: told.setdefault(name, []).append(level)
    )
    assert {"simulate", "clock", "deliveries", "hops", "held", "queued"} <= told.keys()
    for name in ("clock", "deliveries", "hops"):
        assert told[name] == sorted(told[name])
        assert told[name][-1] > 0
    assert told["hops"][-1] <= done.summary["hops"]
    assert max(told["queued"]) > 0


def test_without_a_terminal_there_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    bars = Bars("timestamp", None)
    for seconds in range(25):
        now = float(seconds)
        bars("simulate", seconds, 50)
        bars("clock", seconds * 1_500_000_000, LEVEL)
        bars("hops", 1000 * seconds, LEVEL)
    now = 40.0
    bars("check", 1, 2)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "testbed: timestamp: simulate 20 %, clock 13.500 s, 9,000 hops",
        "testbed: timestamp: simulate 40 %, clock 28.500 s, 19,000 hops",
    ]


def test_on_80_columns_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    screen = Console(file=StringIO(), width=80, force_terminal=True)
    shown = WithLevels(console=screen)
    bars = Bars("timestamp", shown)
    now = 10.0
    bars("simulate", 1, 2)
    levels = {"clock": 617_000_000, "deliveries": 191_918, "hops": 2_499_234, "held": 7}
    for name, level in (levels | {"queued": 41}).items():
        bars(name, level, LEVEL)
    shown.stop()
    with screen.capture() as captured:
        screen.print(shown.get_renderable())
    words = "clock 0.617 s · 191,918 deliveries · 2,499,234 hops · 7 held back · 41 queued"
    assert words in captured.get()


def test_work_in_which_nothing_moves_is_silent_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    bars = Bars("check", None)
    now = 100.0
    bars("check", 1, 2)
    assert capsys.readouterr().err == ""


def test_what_a_sweep_has_done_counts_each_run_once(tmp_path: Path) -> None:
    moving = Moving(tmp_path)
    assert moving.now() == {"deliveries": 0, "hops": 0}
    for number in (1, 2):
        write_run(tmp_path / f"20260101-00000{number}-a-3")
        assert moving.now() == moving.now() == {"deliveries": 6 * number, "hops": 5 * number}


def test_what_a_sweep_has_done_includes_runs_that_are_under_way(tmp_path: Path) -> None:
    moving = Moving(tmp_path)
    with told(tmp_path, "one") as one, told(tmp_path, "two") as two:
        for progress, hops, clock in ((one, 3, 7_000), (two, 4, 9_000)):
            progress("simulate", 1, 2)
            progress("clock", clock, LEVEL)
            progress.said = 0.0  # type: ignore[attr-defined]  # as if a second had passed
            progress("hops", hops, LEVEL)
        assert moving.now() == {"deliveries": 0, "hops": 7, "clock": 9_000}
    assert moving.now() == {"deliveries": 0, "hops": 0}


def test_open_shows_the_page_in_the_users_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def show(url: str) -> bool:
        opened.append(url)
        return url.endswith("a.html")

    monkeypatch.setattr("webbrowser.open", show)
    pages = [tmp_path / name for name in ("a.html", "b.html", "none.html")]
    for page in pages[:2]:
        page.write_text("<p>here</p>")
    for page in pages:
        browser.open_page(page)
    assert opened == [page.as_uri() for page in pages[:2]]
    said = capsys.readouterr().err
    assert "a.html" not in said
    assert "b.html: no browser could be started" in said
    assert "none.html: there is no page to open" in said
