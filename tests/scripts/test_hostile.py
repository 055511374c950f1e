"""Hostile input: a sample of the corpus, of files drawn from the schema, and of signals."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.hostility import __main__ as command
from scripts.hostility import mutations, remains
from scripts.hostility.cases import Bench, Case, Outcome, read_corpus
from scripts.hostility.files import try_files
from scripts.hostility.protocols import Attempt, attempt, misses
from scripts.hostility.remains import TESTBED
from scripts.hostility.signals import COMMANDS, SIGNALS, Range, Shot, shots
from testbed.spark.session import is_news

CORPUS = read_corpus()
SLOW = ("digest", "report", "fuzz", "shell")
EVERY = 9


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def test_the_corpus_is_large_and_its_cases_are_different() -> None:
    assert len(CORPUS) >= 600
    assert len(set(map(repr, CORPUS))) == len(CORPUS)
    assert {word for case in CORPUS for word in case.words} >= {"run", "check", "digest", "report"}


def test_a_sample_of_the_corpus_comes_to_what_it_must(bench: Bench) -> None:
    quick = [case for case in CORPUS if not set(case.words) & set(SLOW)]
    wrong = [(case.name, bench.attempt(case).wrong) for case in quick[::EVERY]]
    assert len(wrong) > 60
    assert not [case for case in wrong if case[1]]


@pytest.mark.parametrize(
    "name",
    [
        "check RUN: network.json: fifo 'True'",
        "check RUN: network.json: link '/dev/zero'",
        "topology = {'model': 'file', 'path': '/dev/zero'}",
        "topology = {'model': 'locality', 'nodes': 4, 'beta",
        "run FILE --no-digest {'COLUMNS': '0'}",
        '{"interfaces": 1}',
        '{"interfaces": {"x": [0, 1]}}',
    ],
)
def test_what_once_broke_a_command_is_tried_every_time(name: str, bench: Bench) -> None:
    (case,) = (case for case in CORPUS if name in case.name)
    assert bench.attempt(case).wrong is None


@pytest.mark.parametrize(
    ("status", "said", "wrong"),
    [
        (2, "testbed: no nodes here", None),
        (1, "testbed: no nodes here", "status 1 instead of 2: testbed: no nodes here"),
        (2, "testbed: no", "does not say 'nodes': testbed: no"),
        (2, "Traceback\nnodes", "a bug: nodes"),
        (-9, "", "ended by signal 9 after 1 s, having said: nothing"),
    ],
)
def test_an_outcome_says_what_is_wrong(status: int, said: str, wrong: str | None) -> None:
    assert Outcome(Case("a case", ("run",), 2, "nodes"), status, said, 1.0).wrong == wrong


def test_files_drawn_from_the_schema_are_run_or_refused() -> None:
    came, tracebacks = try_files(250)
    assert not tracebacks
    assert came["run"] > 10
    assert came["refused"] > 100


def test_a_traceback_is_found_and_shown_with_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.hostility.files.attempt", lambda document: document["missing"])
    _, tracebacks = try_files(5)
    ((where, file),) = tracebacks.items()
    assert where.startswith("KeyError: 'missing'")
    assert 'name = "drawn"' in file


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_leaves_nothing_behind(number: object) -> None:
    (shot,) = (s for s in shots(["simulate"], len(SIGNALS), 1) if s.number == number)
    assert Range().fire(shot) is None


@pytest.mark.parametrize(
    ("file", "shown"), [("site-packages/py4j/java_gateway.py", False), ("testbed/run.py", True)]
)
def test_spark_shows_no_traceback_of_a_signal(file: str, shown: bool) -> None:
    record = logging.makeLogRecord({"msg": "KeyboardInterrupt while sending", "pathname": file})
    assert is_news(record) is shown


def test_what_a_signal_leaves_behind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.hostility.signals.states", lambda place: "a run lives on")
    monkeypatch.setitem(COMMANDS, "simulate", (*TESTBED, "run", "small.toml", "--no-digest"))
    told = Range().fire(Shot("simulate", SIGNALS[0], 0.5))
    assert told == "without a signal: a run lives on"


def test_the_script_counts_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["hostile", "--only", "corpus", "--match", "seed = "])
    monkeypatch.setattr(command, "read_corpus", lambda: [Case("seed = 1", ("protocols",), 1)])
    assert command.main() == 1
    assert "corpus: 1 cases, 1 wrong" in capsys.readouterr().out


def test_a_bad_protocol_ends_as_it_must_and_in_time() -> None:
    outcome = attempt("to-itself", "simulate", 100)
    assert outcome.wrong is None
    assert min(outcome.processor_s, outcome.seconds) > 0
    assert "sends m(" in outcome.said
    assert (attempt("twice", "simulate", 0).wrong or "").startswith("it took ")


@pytest.mark.parametrize(
    ("name", "status", "said", "wrong"),
    [
        ("asks", 2, ["on receiving m(0,1): AssertionError (x, line 3)"], None),
        ("asks", 1, ["on receiving m(0,1): AssertionError (x, line 3)"], "status 1"),
        ("asks", 2, ["AssertionError", "(x, line 3)"], "2 lines instead of one"),
        ("asks", 2, ["AssertionError"], "lacks 'on receiving m(' and '(x, line 3)'"),
        ("twice", 1, ["invalid", "node 0 delivered m(3,1) more than once"], None),
        ("twice", 1, ["36 delivered more than once"], "no line names a message"),
    ],
)
def test_what_a_sentence_lacks_is_found(
    name: str, status: int, said: list[str], wrong: str | None
) -> None:
    found = misses(name, status, said, "(x, line 3)")
    assert found == wrong or (wrong and found and wrong in found)


def test_the_script_tries_protocols_and_counts_those_that_are_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "hostile",
        "--only",
        "protocols",
        "--match",
        "asks",
        "--engines",
        "simulate",
        "mininet",
    ]
    monkeypatch.setattr("sys.argv", words)
    monkeypatch.setattr(command, "can_emulate", lambda: False)
    given = list[tuple[object, ...]]()
    monkeypatch.setattr(command, "in_guest", lambda *words: bool(given.append(words)))  # type: ignore[func-returns-value]
    outcome = Attempt("asks", "simulate", 31.0, 2.0, "a sentence", "it took 31 s")
    monkeypatch.setattr(command, "attempt", lambda name, engine, limit_s: outcome)
    assert command.main() == 1
    how = ("--match", "asks", "--limit", "30")
    assert given == [("--only", "protocols", "--engines", "mininet", *how)]
    out = capsys.readouterr().out
    assert "asks, simulate, 31.0 s, 2.0 of processor: it took 31 s: a sentence" in out
    assert "protocols: 1 tried, 1 not as asked, longest 31 s" in out


def test_the_memory_of_a_guest_that_nobody_has_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remains, "_MEMORY", tmp_path)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    (tmp_path / "causal-testbed-left").mkdir()
    (tmp_path / "causal-testbed-used").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "said").touch()
    monkeypatch.chdir(tmp_path / "causal-testbed-used")
    told = f"temporary files are left: {tmp_path}/causal-testbed-left"
    assert remains.left(1 << 30, tmp_path) == told
    (tmp_path / "causal-testbed-left").rmdir()
    assert remains.left(1 << 30, tmp_path) is None


def test_what_an_emulated_network_leaves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remains, "PATIENCE_S", 0)
    before = remains.machine_state()
    monkeypatch.setattr(remains, "machine_state", lambda: before | {"net:[1]", "/run/netns/h1"})
    assert remains.remains(before) == "on the machine is left: /run/netns/h1, net:[1]"


def test_a_change_of_a_log_is_noticed_by_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "PROTOCOLS", ("timestamp",))
    assert not [*mutations.unnoticed(2, 1)]


def test_what_no_command_notices_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "PROTOCOLS", ("timestamp",))
    monkeypatch.setattr(mutations, "make_copies", lambda *_: ["a"])
    said = {"check": {"untouched": "valid", "a": "valid"}, "digest": {"a": "stale"}}
    monkeypatch.setattr(mutations, "asked", lambda *_: said)
    assert [*mutations.unnoticed(1, 1)] == [
        "timestamp: check calls a run valid: a",
        "timestamp: digest does not call the run valid that is as it was",
    ]
