"""The page of ``testbed live``, in a browser, and who may ask for it."""

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from testbed.experiment import load
from testbed.live.server import Server
from testbed.live.session import Session
from tests.command_line import CommandLine
from tests.experiments import run
from tests.live.test_session import TRIANGLE, late, session
from tests.report.browser import Browser

needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")


@contextmanager
def serving(shown: Session) -> Iterator[Server]:
    with Server(shown) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(session(TRIANGLE, tmp_path)) as server:
        yield server


def asked(server: Server, path: str, content: Any = None, **headers: str) -> tuple[int, Any]:
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(f"http://{server.host}{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_only_who_knows_the_address_may_ask(server: Server) -> None:
    token = {"X-Token": server.token}
    assert asked(server, "/")[0] == 403
    assert asked(server, "/?token=guess")[0] == 403
    assert asked(server, f"/?token={server.token}", Host="evil.example")[0] == 403
    assert asked(server, "/run", {"protocol": 0, "faults": []})[0] == 403
    assert (
        asked(server, "/run", {"protocol": 0, "faults": []}, Host="evil.example", **token)[0] == 403
    )
    assert asked(server, "/etc/passwd", **token)[0] == 404
    status, answer = asked(server, f"/?token={server.token}")
    assert status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_request_that_makes_no_sense_is_a_sentence(server: Server) -> None:
    token = {"X-Token": server.token}
    wrong: list[Any] = [
        {},
        [],
        {"protocol": "x", "faults": []},
        {"protocol": 0, "faults": [late(count=0)]},
    ]
    for content in wrong:
        status, answer = asked(server, "/run", content, **token)
        assert status == 400, content
        assert json.loads(answer)["error"]


@pytest.mark.parametrize("port", ["taken", "99999"])
def test_a_port_that_cannot_be_had_is_told(
    port: str, server: Server, tmp_path: Path, testbed: CommandLine
) -> None:
    chosen = str(server.server_address[1]) if port == "taken" else port
    file = tmp_path / "experiment.toml"
    said = testbed("live", file, "--no-open", "--port", chosen, status=2)
    assert f"--port {chosen}: cannot be listened on" in said.err


@needs_browser
def test_a_message_is_delayed_the_violation_seen_and_the_file_saved(
    server: Server, tmp_path: Path
) -> None:
    with Browser(1400, 1000) as browser:
        browser.visit(server.address)
        assert browser.text("#verdict") == "valid"
        for _ in range(3):
            browser.key("ArrowRight")
        assert "multicasts to everybody" in browser.text("#words")
        browser.evaluate("document.querySelector('#late').value = '5'")
        rows = "[...document.querySelectorAll('#flight tbody tr')]"
        to_carol = f"{rows}.find((row) => row.cells[1].textContent === '2')"
        browser.evaluate(f"{to_carol}.querySelectorAll('button')[1].click()")
        browser.wait_for("document.querySelector('#verdict').textContent === 'invalid'")
        assert browser.text("#message") == ""  # the steps before are the same
        browser.key("v")
        browser.key("ArrowRight")
        assert "before m(0,1)" in browser.text("#wrong")
        assert "delay" in browser.text("#done")
        browser.key("s")
        browser.wait_for("document.querySelector('#message').textContent.startsWith('Saved')")
        assert not browser.problems
        assert {address.split("/")[2] for address in browser.requests} == {server.host}
    (saved,) = tmp_path.glob("*-broken-impatient-1.toml")
    (experiment,) = load(saved)
    assert run(experiment, tmp_path).verdict.verdict == "invalid"


@needs_browser
def test_a_counter_example_of_explore_opens_before_the_step_that_is_wrong(
    tmp_path: Path, testbed: CommandLine
) -> None:
    file = tmp_path / "explored.toml"
    testbed("explore", "--protocol", "broken-late-update", "--save", file, status=1)
    with serving(Session(file)) as server, Browser() as browser:
        browser.visit(server.address)
        assert browser.text("#verdict") == "invalid"
        assert not browser.text("#wrong")
        browser.key("ArrowRight")
        assert "happened before" in browser.text("#wrong")
        assert "delivers" in browser.text("#words")
        browser.key("ArrowLeft")
        assert not browser.text("#wrong")
        assert not browser.problems


@needs_browser
def test_names_are_shown_as_text(tmp_path: Path) -> None:
    evil = {
        **TRIANGLE,
        "protocol": {"name": "bss"},
        "groups": {"model": "named", "members": {"<script>alert(1)</script>": [0, 1, 2]}},
        "workload": {
            "model": "script",
            "send": [{"node": 0, "at_ms": 1.0, "group": "<script>alert(1)</script>"}],
        },
    }
    with serving(session(evil, tmp_path)) as server, Browser() as browser:
        browser.visit(server.address)
        browser.key("End")
        assert not browser.problems
