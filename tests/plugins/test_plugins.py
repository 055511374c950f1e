"""Protocols from anywhere: a file, an installed package, the testbed itself."""

import hashlib
import json
import pickle
from pathlib import Path

import pytest

from scripts.hostility.own import FIFO, written
from testbed import compiled, plugins
from testbed.errors import UserError
from testbed.experiment import load
from testbed.plugins import find_protocol, reference
from testbed.plugins.code import code_hash
from testbed.protocols import PROTOCOLS
from testbed.runs.directory import RunDirectory
from testbed.sweep.points import load_sweep
from tests.command_line import CommandLine
from tests.experiments import run


def test_a_file_outside_the_checkout_is_explored_fuzzed_and_compared(
    tmp_path: Path, testbed: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = testbed("explore", "--protocol", "./fifo.py:Fifo", "--messages", 2, status=1)
    assert "invalid: process 2 delivers m(1,1) without m(0,1)" in said.out
    said = testbed("fuzz", "--protocol", "fifo.py", "--seeds", 3, status=1)
    assert "repeat: testbed run runs/fuzz/fifo-" in said.out
    assert "step through: testbed live runs/fuzz/fifo-" in said.out
    (example,) = (tmp_path / "runs" / "fuzz").glob("*.toml")
    testbed("run", example, "--no-digest", status=1)
    figures = testbed("run", "own.toml", "--no-digest", "--json").json()
    assert [row["protocol"] for row in figures] == ["fifo", "timestamp"]
    assert figures[0]["deliveries"] == figures[1]["deliveries"]
    assert "Counts each sender's messages" in testbed("protocols", "./fifo.py").out
    alone = testbed("run", "own.toml", "--no-digest", "--json", "--protocol", "fifo.py").json()
    assert [row["protocol"] for row in alone] == ["fifo"]


def test_a_run_keeps_the_file_and_can_be_run_again_without_it(tmp_path: Path) -> None:
    file = written(tmp_path)
    first = run(load(tmp_path / "own.toml")[0], tmp_path / "runs")
    file.write_text("something else")
    directory = RunDirectory(first.path)
    kept = directory.manifest["protocol_file"]
    assert (first.path / kept["file"]).read_text() == FIFO
    assert kept["sha256"] == hashlib.sha256(FIFO.encode()).hexdigest()
    assert directory.document["protocol"]["name"] == "protocol/fifo.py:Fifo"
    again = run(load(first.path / "experiment.toml")[0], tmp_path / "again")
    assert again.summary == first.summary
    logs = [run.path / "events" / "nodes.jsonl" for run in (first, again)]
    assert logs[0].read_bytes() == logs[1].read_bytes()
    (first.path / kept["file"]).write_text(FIFO + "\n")
    assert RunDirectory(first.path).verdict == "stale"


def test_an_experiment_travels_to_another_process_with_its_file(tmp_path: Path) -> None:
    file = written(tmp_path)
    experiment = load(tmp_path / "own.toml")[0]
    sent = pickle.dumps(experiment)
    file.unlink()
    assert b"Counts each" in sent
    assert pickle.loads(sent) == experiment


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("class Fifo(:", "fifo.py, line 1: not Python: invalid syntax"),
        ("x = 1\n1 / 0", "fifo.py, line 2: cannot be loaded: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)", "fifo.py, line 2: cannot be loaded: SystemExit: 0"),
        ("from .base import Send", "line 1: cannot be loaded: ImportError: .*from testbed.protoc"),
        ("import nowhere", "line 1: cannot be loaded: ModuleNotFoundError: .*one file"),
        ("import helper", "line 1: it imports 'helper', a file beside it; a protocol is one file"),
        ("x = 1", "there is no class 'Fifo' in it; it has none"),
        ("class Fifo: pass", "Fifo is not a protocol: it does not derive from"),
        (FIFO.replace("def receive", "def get"), "Fifo lacks receive, which every"),
        (FIFO.replace('name = "fifo"', ""), "Fifo needs a name of its own"),
        (FIFO.replace('"fifo"', '"ti mestamp"'), "Fifo needs a name of its own"),
        (FIFO.replace('"fifo"', '"timestamp"'), "called 'timestamp', as a protocol of the testbed"),
        (FIFO.replace('name = "fifo"', 'name = "f"; messages = [1]'), "messages must be a tuple"),
        (
            FIFO.replace('name = "fifo"', 'name = "f"; messages = (Message, Message)'),
            "two of its messages have the same kind",
        ),
        (FIFO.replace('name = "fifo"', 'name = "f"; Settings = 3'), "Settings must be a dataclass"),
        ("\0", "fifo.py.*: "),
    ],
)
def test_a_file_that_is_no_protocol_is_told_in_one_sentence(
    text: str, sentence: str, tmp_path: Path, testbed: CommandLine
) -> None:
    file = written(tmp_path, text)
    (tmp_path / "helper.py").touch()
    with pytest.raises(UserError, match=sentence):
        find_protocol(f"{file}:Fifo")
    with pytest.raises(UserError, match=r"own.toml: protocol.name: fifo.py"):
        load(tmp_path / "own.toml")
    assert testbed("explore", "--protocol", f"{file}:Fifo", status=2).err.count("\n") == 1


def test_a_class_may_be_left_out_where_there_is_only_one(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert find_protocol(str(file)) is find_protocol(f"{file}:Fifo")
    two = written(tmp_path, FIFO + "\n\nclass Lifo(Fifo):\n    name = 'lifo'\n", "two.py")
    with pytest.raises(UserError, match=r"name the protocol's class, .*; it has Fifo, Lifo"):
        find_protocol(str(two))
    assert find_protocol(f"{two}:Lifo").name == "lifo"
    for lacking in ("./nowhere.py:Mine", str(tmp_path / "nothing.py")):
        with pytest.raises(UserError, match="no such file; a protocol was looked for"):
            find_protocol(lacking)
    with pytest.raises(UserError, match="cannot be read"):
        find_protocol(f"{tmp_path}/:Fifo")


def test_wire_ids_are_given_out_and_names_are_unique(tmp_path: Path) -> None:
    chosen = written(tmp_path, FIFO.replace('"fifo"', '"fifo"; wire_id = 2'))
    protocol = find_protocol(str(chosen))
    assert 128 <= protocol.wire_id < 256
    assert protocol.wire_id not in {known.wire_id for known in PROTOCOLS.values()}
    other = written(tmp_path, FIFO.replace("Counts", "Numbers"), "other.py")
    assert find_protocol(str(other)).wire_id == protocol.wire_id  # of the name
    text = (tmp_path / "own.toml").read_text().replace('"timestamp"', '"./other.py"')
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(UserError, match="two different protocols are called 'fifo'"):
        load(tmp_path / "own.toml")


def test_the_code_of_a_protocol_is_part_of_a_point_of_a_sweep(tmp_path: Path) -> None:
    file = written(tmp_path)
    before = load_sweep(tmp_path / "own.toml")
    file.write_text(FIFO.replace("Counts", "Numbers"))
    after = load_sweep(tmp_path / "own.toml")
    assert after.within == before.within
    assert len(before.points.keys() & after.points.keys()) == 1  # Timestamp's
    hashes = {code_hash(protocol) for protocol in PROTOCOLS.values()}
    assert len(hashes) == len(PROTOCOLS)


def test_code_is_all_that_a_protocol_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    import testbed.protocols.groups.flush as inner
    from testbed.plugins import code

    daisy, timestamp = PROTOCOLS["daisy"], PROTOCOLS["timestamp"]
    before = code_hash.__wrapped__(daisy), code_hash.__wrapped__(timestamp)
    read = code._text
    monkeypatch.setattr(code, "_text", lambda m: read(m) + "#" * (m.__name__ == inner.__name__))
    assert code_hash.__wrapped__(daisy) != before[0]
    assert code_hash.__wrapped__(timestamp) == before[1]


def test_the_code_of_what_is_compiled_is_its_source() -> None:
    from testbed.plugins import code
    from testbed.protocols import ks_log

    assert code._text(ks_log) == compiled.source(ks_log.__name__).read_text(encoding="utf-8")


def test_an_installed_package_offers_protocols(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, testbed: CommandLine
) -> None:
    (tmp_path / "offered.py").write_text(FIFO.replace('"fifo"', '"offered"'))
    info = tmp_path / "offered-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    lines = ("offered = offered:Fifo", "timestamp = offered:Fifo", "broken = nowhere:Fifo")
    points = "\n".join([f"[{plugins.GROUP}]", *lines, "other = offered:Fifo"])
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.installed.cache_clear()
    try:
        assert find_protocol("offered").name == "offered"
        assert reference(find_protocol("offered")) == "offered"
        assert find_protocol("timestamp") is PROTOCOLS["timestamp"]
        with pytest.raises(UserError, match="package offered calls itself 'offered'"):
            find_protocol("other")
        said = testbed("protocols", "--json")
        assert "offered" in [described["name"] for described in json.loads(said.out)]
        assert "protocol broken of package offered cannot be loaded" in said.err
    finally:
        plugins.installed.cache_clear()
