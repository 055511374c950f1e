"""Plots and pages: what is drawn, and what a person finds by pointing at it."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from testbed.commands import report
from testbed.errors import UserError
from testbed.report import drawing, labels, plots, write_reports
from testbed.report.page import write_page
from testbed.report.spacetime import busiest_stretch
from testbed.runs import results
from tests.command_line import CommandLine
from tests.report.browser import Browser
from tests.report.digested import MS, TRIANGLE, Event, write_run


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def triangle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_page(write_run(tmp_path_factory.mktemp("runs") / "triangle"))


def bare_page(run: Path) -> Path:
    """A run's page without plots, which take seconds to draw."""
    page = run / "bare.html"
    page.write_text(write_page([results.load(run)], ["small"], [], {}))
    return page


def chaos(processes: int, messages: int, seed: int = 1) -> list[Event]:
    """A run without any order: each message reaches everyone at some time of its own."""
    rng = random.Random(seed)
    events, counts = [], [0] * processes
    for number in range(messages):
        source, sent = rng.randrange(processes), number * MS
        counts[source] += 1
        name = (source, counts[source])
        events += [Event(source, sent, "send", *name), Event(source, sent, "deliver", *name)]
        for node in set(range(processes)) - {source}:
            arrival = sent + rng.randrange(1, 9 * MS)
            if rng.random() < 0.3:
                events.append(Event(node, arrival, "hold", *name, name))
                arrival += rng.randrange(1, MS)
            events.append(Event(node, arrival, "deliver", *name))
    return events


def happened_before(events: list[Event]) -> dict[tuple[int, int], tuple[list[int], set[Any]]]:
    """Each message's vector and the messages that happened before it, reckoned step by step."""
    processes = max(event.node for event in events) + 1
    pasts: list[set[tuple[int, int]]] = [set() for _ in range(processes)]
    delivered = [[0] * processes for _ in range(processes)]
    found = {}
    for event in sorted(events, key=lambda event: event.at):
        name = (event.source, event.seq)
        if event.event == "send":
            vector = list(delivered[event.node])
            vector[event.node] += 1
            found[name] = vector, set(pasts[event.node])
            pasts[event.node].add(name)
        elif event.event == "deliver":
            delivered[event.node][event.source] += 1
            pasts[event.node] |= found[name][1] | {name}
    return found


def test_a_report_leaves_figures_and_one_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert write_reports([run]) == [run / "report.html"]
    names = {"delays", "parts", "stretch", "timeline", "bytes", "links", "spacetime"}
    assert {file.name for file in (run / "figures").iterdir()} == {
        f"{name}.{suffix}" for name in names for suffix in ("svg", "png")
    }
    for file in (run / "figures").glob("*.svg"):
        assert ElementTree.fromstring(file.read_bytes()).tag.endswith("svg")
        assert not re.search(r"\bnan\b|\binf\b", file.read_text(), re.IGNORECASE), file
    assert all(png.read_bytes()[:4] == b"\x89PNG" for png in (run / "figures").glob("*.png"))
    assert not list(run.rglob("*.part"))


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    def drawn() -> list[plots.Plot]:
        names = ["overlay", "timestamp"]
        (its,) = drawing.draw_all([([tmp_path / name for name in names], names)], lambda *_: None)
        return its

    write_run(tmp_path / "overlay", TRIANGLE[:5], protocol="overlay")
    run = write_run(tmp_path / "timestamp")
    first = drawn()
    assert first == drawn()
    assert len(first) == len(plots.PLOTS)
    assert bare_page(run).read_bytes() == bare_page(run).read_bytes()


def test_several_runs_get_a_page_that_compares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = {"ratios": plots.PLOTS["ratios"]}  # all of them take long
    monkeypatch.setattr(plots, "PLOTS", drawn)
    runs = [write_run(tmp_path / name, protocol=name) for name in ("overlay", "timestamp")]
    # With the same figures there would be nothing to compare.
    summary = json.loads((runs[1] / "summary.json").read_text())
    (runs[1] / "summary.json").write_text(json.dumps({**summary, "delay_ms_mean": 99.0}))
    pages = write_reports(runs)
    assert pages == [*(run / "report.html" for run in runs), tmp_path / "report.html"]
    assert (tmp_path / "figures/ratios.svg").exists()
    page = pages[-1].read_text()
    assert 'href="overlay/report.html"' in page
    assert page.count('<div class="spacetime">') == 2
    other = write_reports(runs, tmp_path / "elsewhere")[-1]
    assert other == tmp_path / "elsewhere/report.html"
    assert 'href="../overlay/report.html"' in other.read_text()


def test_runs_are_told_apart_by_the_first_thing_that_differs(tmp_path: Path) -> None:
    same = [results.load(write_run(tmp_path / name)) for name in ("first", "second")]
    assert labels(same) == ["first", "second"]
    emulated = results.load(write_run(tmp_path / "third", engine="virtual"))
    assert labels([same[0], emulated]) == ["timestamp, simulate", "timestamp, virtual"]
    overlay = results.load(write_run(tmp_path / "fourth", protocol="overlay"))
    assert labels([same[0], overlay]) == ["timestamp", "overlay"]


def test_pages_are_called_as_the_runs_were_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "PLOTS", {})
    monkeypatch.chdir(tmp_path)
    one, other = (write_run(Path("runs") / name) for name in ("one", "other"))
    pages = write_reports([one, other, one])
    assert list(map(str, pages)) == [
        "runs/one/report.html",
        "runs/other/report.html",
        "runs/report.html",
    ]
    assert write_reports([one, other.resolve()])[-1] == tmp_path / "runs/report.html"


def test_a_comparison_does_not_overwrite_the_page_of_a_run(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name) for name in ("a", "b")]
    with pytest.raises(UserError, match="--output"):
        write_reports(runs, runs[0])
    assert not (runs[0] / "report.html").exists()


def test_a_run_without_packets_has_a_page_that_says_so(tmp_path: Path) -> None:
    page = write_reports([write_run(tmp_path / "run", packets=False)])[0]
    assert "--packets full" in page.read_text()
    assert not (tmp_path / "run/figures/links.svg").exists()


def test_a_run_in_which_nothing_was_delivered_has_a_page(tmp_path: Path) -> None:
    events = [Event(0, 0, "send", 0, 1), Event(1, 5, "hold", 0, 1, (1, 1))]
    page = write_reports([write_run(tmp_path / "run", events)])[0]
    assert "m(0,1)" not in page.read_text().split("<script")[0]


def test_a_page_shows_what_is_wrong_with_a_run(tmp_path: Path) -> None:
    fidelity = {"verdict": "suspect", "hops": 5, "dropped": 1, "error_us_p50": 0.1}
    fidelity |= {"error_us_p99": 1.0, "error_us_p999": 700.0, "error_us_max": 900.0}
    extra: dict[str, Any] = {"engine": "mininet", "fidelity": fidelity, "verdict": "invalid"}
    why = ["node 2 delivered m(1,1) before m(0,1)", "a < b"]
    run = write_run(tmp_path / "run", **extra, counters={"kernel_dropped": 1}, why=why)
    page = bare_page(run).read_text()
    assert '<span class="verdict bad">invalid</span>' in page
    assert '<span class="verdict bad">suspect</span>: 5 hops' in page
    assert '<th scope="row">kernel dropped</th>' in page
    assert "node 2 delivered m(1,1) before m(0,1)<br>a &lt; b" in page
    assert "testbed check run" in page


def test_what_a_page_quotes_is_not_taken_for_html(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", versions={"python": "<script>alert(1)</script>"})
    page = bare_page(run).read_text()
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page


def test_the_command_prints_where_the_pages_are(tmp_path: Path, testbed: CommandLine) -> None:
    run = write_run(tmp_path / "run")
    assert f"report: {run / 'report.html'}" in testbed("report", run).out
    assert "no such run directory" in testbed("report", tmp_path / "none", status=2).err
    assert report.add_parser.__doc__


def test_the_stretch_shown_of_a_long_run_is_where_most_was_held(tmp_path: Path) -> None:
    quiet = [Event(0, at, "deliver", 0, at + 1) for at in range(100)]
    busy = [Event(0, at, "hold", 1, at, (1, 0)) for at in range(50, 60)]
    run = results.load(write_run(tmp_path / "run", [*quiet, *busy, Event(1, 0, "send", 1, 1)]))
    first, last = busiest_stretch(run.events, 20)
    assert (first, last) == (50, 59)
    assert busiest_stretch(run.events[run.events["event"] == "deliver"], 20) == (0, 19)
    assert busiest_stretch(run.events, 10_000) == (0, 99)


def test_a_page_draws_its_diagram_and_asks_for_nothing_else(
    browser: Browser, triangle: Path
) -> None:
    browser.open(triangle)
    assert browser.evaluate("document.querySelector('.spacetime').dataset.drawn") == "4/4"
    coloured = """(() => {
        const { canvas, context } = document.querySelector(".spacetime").diagram;
        const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) count += data[i + 3] > 0 && data[i] < 100;
        return count;
    })()"""
    assert browser.evaluate(coloured) > 500
    assert browser.problems == []
    assert {url for url in browser.requests if not url.startswith("data:")} == {triangle.as_uri()}


def test_the_address_can_name_a_message(browser: Browser, triangle: Path) -> None:
    browser.open(triangle, "#m(1,1)")
    about = browser.text(".about")
    assert "m(1,1): multicast by process 1 at 3.000 ms" in about
    assert "vector: [1 1 0]" in about
    assert "causal past: 1 message" in about
    assert "held back by process 2 for 5.000 ms, waiting at last for m(0,1)" in about
    assert browser.evaluate("document.querySelector('.spacetime').diagram.pinned") == 1
    assert browser.problems == []


def point(browser: Browser, process: int, at: int) -> tuple[float, float]:
    """Where in the window a process's moment is."""
    x, y = browser.evaluate(f"""(() => {{
        const {{ diagram }} = document.querySelector(".spacetime");
        diagram.canvas.scrollIntoView();
        const box = diagram.canvas.getBoundingClientRect();
        return [box.left + diagram.x({at}), box.top + diagram.y({process})];
    }})()""")
    return x, y


def test_pointing_at_an_arrow_tells_of_its_message_and_clicking_keeps_it(
    browser: Browser, triangle: Path
) -> None:
    browser.open(triangle)
    assert browser.text(".about") == ""
    (x0, y0), (x1, y1) = point(browser, 0, 0), point(browser, 2, 9 * MS)
    middle = ((x0 + x1) / 2, (y0 + y1) / 2 + 3)
    browser.mouse("mouseMoved", *middle)
    assert "m(0,1): multicast by process 0" in browser.text(".about")
    assert "at process 2: received at 9.000 ms" in browser.text(".about")
    browser.mouse("mouseMoved", x0 + 2, y1 - 60)
    assert browser.text(".about") == ""
    browser.click(*middle)
    browser.mouse("mouseMoved", x0 + 2, y1 - 60)
    assert "m(0,1)" in browser.text(".about")
    browser.key("Escape")
    assert browser.text(".about") == ""


def test_pointing_at_a_bar_tells_for_how_long_and_why(browser: Browser, triangle: Path) -> None:
    browser.open(triangle)
    browser.mouse("mouseMoved", *point(browser, 2, 6 * MS))
    assert "m(1,1)" in browser.text(".about")
    assert "waiting at last for m(0,1)" in browser.text(".about")


def view(browser: Browser) -> tuple[float, float]:
    names = "const { from, until } = document.querySelector('.spacetime').diagram"
    first, last = browser.evaluate(f"(() => {{ {names}; return [from, until]; }})()")
    return first, last


def test_one_zooms_and_moves_with_mouse_and_keys(browser: Browser, triangle: Path) -> None:
    browser.open(triangle)
    x, y = point(browser, 1, 6 * MS)
    whole = view(browser)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=1)
    assert view(browser) == whole, "the wheel scrolls the page until one clicks into the diagram"
    x, y = point(browser, 1, 6 * MS)
    browser.click(x, y + 40)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    near = view(browser)
    assert near[1] - near[0] < 0.8 * (whole[1] - whole[0])
    assert near[0] < 6 * MS < near[1]
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", x - 100, y, button="left", buttons=1)
    browser.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
    assert view(browser)[0] > near[0]
    browser.key("-")
    assert view(browser)[1] - view(browser)[0] > near[1] - near[0]
    browser.key("0")
    assert view(browser) == whole
    browser.key("n")
    assert "m(0,1)" in browser.text(".about")
    browser.key("n")
    assert "m(1,1)" in browser.text(".about")
    assert browser.problems == []


def test_a_message_is_found_by_its_name(browser: Browser, triangle: Path) -> None:
    browser.open(triangle)
    find = """((text) => {
        document.querySelector(".spacetime input").value = text;
        document.querySelector(".spacetime form button").click();
        return document.querySelector(".about").innerText;
    })"""
    for text in ("m(1,1)", "1,1", " M( 1 , 1 ) "):
        assert browser.evaluate(f"{find}({json.dumps(text)})").startswith("m(1,1): multicast")
    for text in ("m(1,7)", "what", ""):
        assert "There is no message" in browser.evaluate(f"{find}({json.dumps(text)})")


RECKONED = """(() => {
    const { history } = document.querySelector(".spacetime").diagram;
    return Array.from(history.source, (_, m) => {
        const past = history.past(m), before = [];
        for (let e = 0; e < history.kind.length; e++) {
            const name = history.name(history.message[e]);
            if (history.kind[e] === 0 && e < past[history.node[e]]) before.push(name);
        }
        const vector = history.vector(m);
        return [history.name(m), vector && Array.from(vector), before.sort()];
    });
})()"""


def test_vectors_and_causal_pasts_are_those_of_a_plain_reckoning(
    browser: Browser, tmp_path: Path
) -> None:
    events = chaos(processes=6, messages=60)
    browser.open(bare_page(write_run(tmp_path / "run", events)))
    expected = happened_before(events)
    found = browser.evaluate(RECKONED)
    assert len(found) == 60
    for name, vector, past in found:
        source, seq = map(int, re.findall(r"\d+", name))
        assert vector == expected[source, seq][0], name
        assert past == sorted(f"m({s},{q})" for s, q in expected[source, seq][1]), name


def test_a_part_of_a_long_run_says_so_and_keeps_its_vectors(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.report.page.EVENTS", 100)
    events = chaos(processes=6, messages=60)
    browser.open(bare_page(write_run(tmp_path / "run", events)))
    assert re.search(rf"\d+ of the run’s {len(events)} events", browser.text(".note"))
    expected = happened_before(events)
    whole = [(name, vector) for name, vector, _ in browser.evaluate(RECKONED) if vector]
    assert whole
    for name, vector in whole:
        source, seq = map(int, re.findall(r"\d+", name))
        assert vector == expected[source, seq][0], name
    assert browser.problems == []


def test_of_too_many_arrows_a_sample_is_drawn_and_the_page_says_so(
    browser: Browser, tmp_path: Path
) -> None:
    browser.open(bare_page(write_run(tmp_path / "run", chaos(50, 60))))
    note = re.match(r"showing ([\d,]+) of 2,940 arrows", browser.text(".note"))
    assert note
    assert 500 < int(note[1].replace(",", "")) <= 1600
    browser.evaluate("document.querySelector('.spacetime').diagram.zoom(0.1)")
    browser.evaluate("document.querySelector('.spacetime').diagram.draw()")
    assert re.fullmatch(r"[\d,]+ arrows", browser.text(".note"))


def test_a_message_that_never_came_is_held_to_the_end(browser: Browser, tmp_path: Path) -> None:
    held = [event for event in TRIANGLE if not (event.node == 2 and event.event == "deliver")]
    browser.open(bare_page(write_run(tmp_path / "run", held)), "#m(1,1)")
    assert "held back by process 2 to the end, waiting for m(0,1)" in browser.text(".about")
    assert browser.problems == []
