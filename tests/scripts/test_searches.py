"""Long searches: crashes at every event, in samples; what is tried is kept, and one goes on."""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts import searches
from scripts.searches import Memory, fuzz_long, search
from scripts.searches.crashes import WAYS, Crash, CrashRun, scenario, tried
from scripts.searches.fail_over import MOST_CRASHES, Case, crash, first_crashes, read, written
from testbed.fuzz import Batch, Origin, Tally, batches, try_batch
from testbed.progress import silent
from testbed.protocols.groups.casting import Casting

MUTANT = "broken-no-fifo"


@pytest.fixture
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is done in this process."""

    def spread(function: Callable[[Any], Any], pieces: list[Any], master: str) -> Iterator[Any]:
        yield from map(function, pieces)

    monkeypatch.setattr("testbed.spark.tasks.spread", spread)


# crashes of one process and of two


@pytest.mark.parametrize(
    ("way", "firsts", "pairs"), [("all", 12, 2), ("recipients", 4, 2), ("server", 6, 0)]
)
def test_any_process_and_any_two_may_crash_at_any_event(way: str, firsts: int, pairs: int) -> None:
    for moment in random.Random(way).sample(first_crashes(way, 1), firsts):
        found = crash(Case(way, 1, moment.crash, moment.at, pairs))
        assert not found["wrong"]
        assert found["runs"] == 1 + (pairs if MOST_CRASHES[way] > 1 else 0)


def test_a_crash_within_a_broadcast_is_found_where_views_begin_without_a_flush(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    to_server, to_member = (Crash(5, sent) for sent in (2, 3))  # copies of one message
    assert {to_server, to_member} <= {moment.crash for moment in first_crashes("all", 1)}
    assert tried("all", 1, [to_server]).wrong is None
    monkeypatch.setattr(Casting, "union", lambda self, states: iter(()))
    assert "never" in (tried("all", 1, [to_server]).wrong or "")


def test_a_process_that_crashes_does_and_says_nothing_more() -> None:
    run = CrashRun(scenario("all", 1), [Crash(5, 2), Crash(3, 0)])
    run.run(silent)
    assert (run.count[5], run.count[3], run.dead) == (2, 0, {3, 5})
    assert [event.event for event in run.memory.events[5]] == ["send", "crash"]
    assert not [*run.wrong()]


def test_a_crash_that_nobody_gets_to_is_no_success() -> None:
    assert tried("all", 1, [Crash(5, 10**6)]).wrong == "process 5 does not get to its crash"


def test_crashes_are_written_as_they_are_read() -> None:
    crashes = (Crash(5, 113), Crash(0, 7))
    assert tuple(map(read, written(crashes).split())) == crashes
    assert WAYS.keys() == MOST_CRASHES.keys()


# what is kept


@pytest.mark.usefixtures("_here")
def test_a_search_that_was_stopped_goes_on(tmp_path: Path) -> None:
    done: list[int] = []

    def work(piece: int) -> int:
        done.append(piece)
        return piece**2

    pieces = {f"piece {n}": n for n in range(6)}
    first = search(pieces, work, Memory(tmp_path / "found.jsonl"), "local")
    assert [next(first), next(first), next(first)] == [0, 1, 4]
    first.close()  # type: ignore[attr-defined]
    file = tmp_path / "found.jsonl"
    file.write_text(file.read_text()[:-3])  # it was killed while it wrote
    assert [*search(pieces, work, Memory(file), "local")] == [0, 1, 4, 9, 16, 25]
    assert done == [0, 1, 2, 2, 3, 4, 5]
    assert [*search(pieces, work, Memory(file), "local")] == [0, 1, 4, 9, 16, 25]
    assert len(done) == 7


@pytest.mark.usefixtures("_here")
def test_what_other_code_has_found_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, file = tmp_path / "root", tmp_path / "found.jsonl"
    source = root / "protocols" / "causal.py"
    source.parent.mkdir(parents=True)
    monkeypatch.setattr(searches, "ROOT", root)
    source.write_text("right = False")
    assert [*search({"a": 1}, str, Memory(file), "local")] == ["1"]
    source.write_text("right = True")
    assert [*search({"a": 1}, len_of, Memory(file), "local")] == [1]
    source.write_text("right = False")
    assert [*search({"a": 1}, len_of, Memory(file), "local")] == ["1"]


def len_of(piece: int) -> int:
    return len(str(piece))


# many seeds


def test_a_tally_is_the_same_after_it_was_written() -> None:
    tally = Tally("daisy", 3, 7, 40, 200, 5, {Origin(2, True, "flushing"): "gap"})
    tally.coverage.update(tally.table[:3])
    assert fuzz_long.from_json(json.loads(json.dumps(fuzz_long.to_json(tally)))) == tally


def test_every_seed_that_goes_wrong_is_a_file_and_the_others_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(batch: Batch) -> Tally:
        if batch.origins[0].seed == 2:
            raise AssertionError("not promised")
        return try_batch(batch)

    monkeypatch.setattr(fuzz_long, "try_batch", failing)
    batch = Batch(MUTANT, tuple(map(Origin, range(1, 5))))
    found = fuzz_long.try_and_shrink(batch, tmp_path)
    tally = fuzz_long.from_json(found["tally"])
    assert tally.wrong[Origin(2)] == "AssertionError: not promised"
    files = sorted(Path(file).name for file in found["files"])
    assert files == sorted(f"{MUTANT}-{o.seed}.toml" for o in tally.wrong if o.seed != 2)
    assert files
    assert {file.name for file in tmp_path.iterdir()} == set(files)


@pytest.mark.usefixtures("_here")
def test_many_seeds_end_in_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--protocol", "timestamp", MUTANT, "--seeds", "6", "--large", "0", "--runs"]
    monkeypatch.setattr("sys.argv", ["fuzz-long", *words, str(tmp_path)])
    assert fuzz_long.main()
    told = capsys.readouterr().out
    rows = {row.split()[0]: row.split()[1:] for row in told.splitlines()[-3:]}
    assert rows["timestamp"][:6] == ["mostly", "small", "6", "6", "0", "0"]
    assert int(rows[MUTANT][5]) > 0
    assert fuzz_long.main()  # what is known is told again
    assert capsys.readouterr().out == told


def test_batches_that_differ_in_any_way_have_different_names() -> None:
    def names(**how: Any) -> Iterable[str]:
        return (fuzz_long.named(batch) for batch in batches([Tally("daisy")], range(1, 41), **how))

    aimed = Batch("daisy", (Origin(1, False, "flushing"), Origin(2)))
    plain = Batch("daisy", (Origin(1), Origin(2)))
    assert len({*names(), *names(large=True), fuzz_long.named(aimed), fuzz_long.named(plain)}) == 6
