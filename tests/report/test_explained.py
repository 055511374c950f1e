"""The page explains delays: parts, hops, causes, and where order broke."""

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from testbed.report.page import write_page
from testbed.report.slowest import slowest_messages
from testbed.report.ways import PARTS, with_ahead
from testbed.runs import results
from tests.report.browser import Browser
from tests.report.digested import MS, TRIANGLE, Event, write_run

A4 = 672  # pixels between the margins of a page
# Process 2 delivers the answer before the question.
BROKEN = (
    *(event for event in TRIANGLE if event.node != 2),
    Event(2, 4 * MS, "deliver", 1, 1),
    Event(2, 9 * MS, "deliver", 0, 1),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


def page_of(run: Path, name: str = "small") -> Path:
    page = run / "bare.html"
    page.write_text(write_page([results.load(run)], [name], [], {}))
    return page


def test_a_delay_is_taken_apart_down_to_its_links(browser: Browser, tmp_path: Path) -> None:
    browser.open(page_of(write_run(tmp_path / "run")), "#m(1,1)@2")
    about = browser.text(".about")
    assert "6.000000 ms = propagation 1.000000 + held back 5.000000" in about
    assert (
        "held back, at last for m(0,1), which came by 0 → 2 and was delivered 9.000000 ms" in about
    )
    assert "process 1 sends it to process 2, 100 bytes on the link" in about
    assert "1 → 2\t3.000000\t0.000000\t–\t0.080000\t1.000000 − 0.080000\t4.000000" in about
    shares = "[...document.querySelectorAll('.about .parts span')].map((s) => +s.style.flexGrow)"
    assert browser.evaluate(shares) == pytest.approx([1 / 6, 5 / 6], abs=1e-5)
    # From a message to what it waited for, and by keys to the next process that got it.
    browser.evaluate("document.querySelector('.about a').click()")
    browser.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert browser.text(".about").startswith("m(0,1): multicast")
    assert "at process 2: received at 9.000 ms" in browser.text(".about")
    browser.evaluate("document.querySelector('canvas').focus()")
    browser.key("r")
    assert "at process 1: received at 2.000 ms" in browser.text(".about")
    assert browser.problems == []


def test_what_a_packet_waited_behind_is_named(browser: Browser, tmp_path: Path) -> None:
    events = [
        Event(0, 0, "send", 0, 1),
        Event(0, 0, "send", 0, 2),
        Event(1, 2 * MS, "deliver", 0, 1),
        Event(1, 3 * MS, "deliver", 0, 2),
    ]
    run = write_run(tmp_path / "run", events)
    table = run / "tables" / "hops.parquet"
    hops = pd.read_parquet(table)
    hops.loc[hops["seq"] == 2, "started"] = 80_000  # when the first is out
    hops.to_parquet(table, index=False)
    browser.open(page_of(run), "#m(0,2)@1")
    assert "0 → 1\t0.000000\t0.080000\t1 packet: m(0,1)\t" in browser.text(".about")


def test_packets_ahead_are_those_not_out_when_one_joins_the_queue() -> None:
    links = pd.DataFrame({"tail": [0], "head": [1], "bandwidth_bps": [8_000_000]})  # a byte a µs
    queued = [0, 10_000, 20_000, 400_000]
    hops = pd.DataFrame({"tail": 0, "head": 1, "queued": queued, "bytes": 100})
    hops["started"] = [0, 100_000, 200_000, 400_000]
    assert with_ahead(hops, links)["ahead"].tolist() == [0, 1, 2, 0]


def test_the_diagram_marks_where_order_broke(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", BROKEN, verdict="invalid")
    browser.open(page_of(run), "#m(1,1)")
    marks = "document.querySelector('.spacetime').diagram.marks"
    assert browser.evaluate(marks) == [{"node": 2, "early": 4 * MS, "late": 9 * MS}]
    assert "✗ where causal order broke: 1" in browser.text(".note")
    sentence = "node 2 delivered m(1,1) before m(0,1), but m(0,1) happened before m(1,1)"
    assert f"✗ {sentence}" in browser.text(".about")
    assert browser.problems == []


def test_the_slowest_messages_have_the_same_parts(tmp_path: Path) -> None:
    table = slowest_messages(results.load(write_run(tmp_path / "run")))
    assert '<a href="#m(0,1)@2">m(0,1)</a>' in table
    cells = "".join(
        f'<td class="n">{cell}</td>' for cell in ("2", "6.000000", "1.000000", "5.000000")
    )
    assert f'<a href="#m(1,1)@2">m(1,1)</a></th>{cells}' in table
    assert "retransmission" not in table


def test_a_name_that_is_a_script_does_nothing(browser: Browser, tmp_path: Path) -> None:
    script = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"
    why = [f"node 2 delivered {script}"]
    run = write_run(tmp_path / "run", BROKEN, verdict="invalid", why=why, engine=script)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest |= {
        "versions": {script: script},
        "command": ["testbed", script],
        "counters": {script: 1},
    }
    (run / "manifest.json").write_text(json.dumps(manifest))
    page = page_of(run, script)
    browser.open(page, f"#{script}")
    assert browser.evaluate("window.hurt") is None
    assert {url for url in browser.requests if not url.startswith("data:")} == {
        url for url in browser.requests if url.startswith(page.as_uri())
    }


def test_the_way_of_a_message_that_others_carry_leads_through_relays(
    browser: Browser, tmp_path: Path
) -> None:
    """It travels in datagrams of the protocol's own, by way of process 1, which is no destination."""
    events = [
        Event(0, 0, "send", 0, 1),
        Event(0, 0, "send", 0, 2),
        Event(2, 9 * MS, "deliver", 0, 1),
        Event(2, 9 * MS, "deliver", 0, 2),
    ]
    run = write_run(tmp_path / "run", events)
    tables = run / "tables"
    hop = {"started": 0, "error": 0, "bytes": 100, "kind": 12, "fragment": 0, "seq": 0}
    legs = [(0, 1, 3, 0, 2 * MS), (0, 1, 4, MS, 4 * MS), (1, 2, 5, 5 * MS, 7 * MS)]
    rows = [
        {**hop, "tail": a, "head": b, "sender": a, "receiver": b, "copy": copy, "source": a}
        | {"queued": queued, "started": queued, "arrived": arrived}
        for a, b, copy, queued, arrived in legs
    ]
    last = rows[-1]  # which waits behind two others, in each of which both messages are
    rows += [{**last, "receiver": 3, "copy": copy, "started": 5 * MS} for copy in (1, 2)]
    rows[-1]["started"], last["started"] = 5 * MS + 80_000, 5 * MS + 160_000
    legs += [(1, 3, copy, 5 * MS, 7 * MS) for copy in (1, 2)]
    pd.DataFrame(rows).to_parquet(tables / "hops.parquet", index=False)
    carried = [
        {"at": queued, "sender": a, "receiver": b, "copy": copy, "source": 0, "seq": seq}
        for a, b, copy, queued, _ in legs
        for seq in (1, 2)
    ]
    pd.DataFrame(carried).to_parquet(tables / "carried.parquet", index=False)
    delays = pd.read_parquet(tables / "delays.parquet")
    parts = {"propagation": 4 * MS, "relaying": 3 * MS, "waiting": 2 * MS}
    delays = delays.assign(via=1, copy=5, **parts)
    delays.to_parquet(tables / "delays.parquet", index=False)
    browser.open(page_of(run), "#m(0,1)@2")
    about = browser.text(".about")
    assert "9.000000 ms = propagation 4.000000 + relaying 3.000000 + waiting 2.000000" in about
    assert "at process 2: received at 7.000 ms, delivered at 9.000 ms" in about
    assert "process 0 sends it to process 1, 100 bytes on the link" in about
    assert "0 → 1\t0.000000\t0.000000\t–\t0.080000\t" in about
    assert "process 1 passes it on to process 2, 100 bytes on the link" in about
    assert "1 → 2\t5.000000\t0.160000\t2 packets: m(0,1) + m(0,2) ×2\t" in about
    assert browser.problems == []


def test_on_paper_no_table_is_cut_off(browser: Browser, tmp_path: Path) -> None:
    """Not even that of the slowest messages where every part is something."""
    run = write_run(tmp_path / "run")
    table = run / "tables" / "delays.parquet"
    delays = pd.read_parquet(table)
    delays = delays.assign(**dict.fromkeys(PARTS, 123_456_789), delay=1_234_567_890)
    delays.to_parquet(table, index=False)
    browser.open(page_of(run))
    right = "(table) => table.getBoundingClientRect().right"
    wide = f"Math.max(...[...document.querySelectorAll('table')].map({right}))"
    try:
        browser.emulate("print", A4)
        assert browser.evaluate("document.querySelectorAll('table.wide').length") == 1
        assert browser.evaluate(wide) <= A4
        browser.evaluate("document.querySelector('.wide').classList.remove('wide')")
        assert browser.evaluate(wide) > A4
    finally:
        browser.emulate("screen", 1280)
