"""Crash any process, and any two, at every event of a run of the daisy, and lose nothing.

Twelve processes on three levels send, and answer inside deliveries. Each crashes after each datagram
that it sends, each time in a new run; then, in each of these, another does. Of second crashes one is
tried for each *situation*: who sends what kind of datagram to whom in which group, and the sender's
states in its groups. The survivors must deliver all that they must, in causal order, and within 700 ms
of the last crash be able to send to all.
"""

import random
import time
from pathlib import Path
from typing import Any, NamedTuple

from scripts import parser
from scripts.searches import Memory, bar, search, start
from scripts.searches.crashes import BUSY_MS, PROCESSES, REPAIR_MS, WAYS, Crash, Moment, tried
from testbed.protocols import NS_PER_MS

MOST_CRASHES = {"all": 2, "recipients": 2, "server": 1}  # that each way promises to survive


class Case(NamedTuple):
    """A first crash, and how many second ones are tried after it; all, if None."""

    way: str
    seed: int
    first: Crash
    at: int
    pairs: int | None


def first_crashes(way: str, seed: int) -> list[Moment]:
    """All moments at which one process can crash while the run is busy."""
    outcome = tried(way, seed, ())
    assert outcome.wrong is None, outcome.wrong
    unsent = [Moment(Crash(node, 0), 0, None) for node in range(PROCESSES)]
    return unsent + [m for m in outcome.moments if m.at <= BUSY_MS * NS_PER_MS]


def crash(case: Case) -> dict[str, Any]:
    """Try a first crash, and second ones after it."""
    begun = time.process_time()
    outcome = tried(case.way, case.seed, [case.first])
    found: list[tuple[tuple[Crash, ...], str | None]] = [((case.first,), outcome.wrong)]
    if MOST_CRASHES[case.way] > 1 and case.pairs != 0:
        for second in second_crashes(case, outcome.moments):
            crashes = (case.first, second)
            found.append((crashes, tried(case.way, case.seed, crashes).wrong))
    wrong = {written(crashes): sentence for crashes, sentence in found if sentence}
    return {"runs": len(found), "cpu_s": time.process_time() - begun, "wrong": wrong}


def second_crashes(case: Case, moments: tuple[Moment, ...]) -> list[Crash]:
    """One for each situation until all is repaired, drawn by the seed."""
    rng = random.Random(f"{case.seed} {case.first}")
    end = max(case.at, BUSY_MS * NS_PER_MS) + REPAIR_MS * NS_PER_MS
    alike: dict[Any, list[Crash]] = {}
    for moment in moments:
        if moment.at < end:
            alike.setdefault(moment.situation, []).append(moment.crash)
    drawn = [rng.choice(crashes) for crashes in alike.values()]
    return drawn if case.pairs is None else rng.sample(drawn, min(case.pairs, len(drawn)))


def written(crashes: tuple[Crash, ...]) -> str:
    """Crashes as the command line takes them."""
    return " ".join(f"{node}:{sent}" for node, sent in crashes)


def read(text: str) -> Crash:
    """A crash of the command line."""
    node, _, sent = text.partition(":")
    return Crash(int(node), int(sent))


def run_all(way: str, seed: int, pairs: int | None, runs: Path, master: str) -> bool:
    """Try everything that has not been tried, tell of it, and say whether all was well."""
    firsts = first_crashes(way, seed)
    random.Random(seed).shuffle(firsts)  # so that what was tried by then is a fair sample
    cases = {
        f"{way} {seed} {written((m.crash,))} {pairs}": Case(way, seed, m.crash, m.at, pairs)
        for m in firsts
    }
    wrong: dict[str, str] = {}
    number, cpu_s = 0, 0.0
    with bar(f"fail-over, inside {way}", "first crashes", len(cases)) as progress:
        for done, found in enumerate(
            search(cases, crash, Memory(runs / "fail-over.jsonl"), master), 1
        ):
            number, cpu_s = number + found["runs"], cpu_s + found["cpu_s"]
            wrong |= found["wrong"]
            for crashes, sentence in found["wrong"].items():
                print(f"  --inside {way} --seed {seed} --repeat {crashes}: {sentence}", flush=True)
            progress(done)
    print(
        f"inside {way}, seed {seed}: {len(cases):,} crashes of one process, "
        f"{number - len(cases):,} of two; {len(wrong):,} went wrong; {cpu_s:,.0f} s of CPU time",
        flush=True,
    )
    return not wrong


def main() -> bool:
    """Search, or repeat one case; whether something went wrong."""
    command = parser("fail-over", __doc__)
    command.add_argument("--inside", choices=[*WAYS], help="default: all of these, in turn")
    command.add_argument("--seed", type=int, default=1, help="of delays, and what is drawn")
    command.add_argument("--pairs", type=int, help="second crashes after each first (default: all)")
    command.add_argument("--repeat", nargs="+", type=read, metavar="NODE:SENT", help="only this")
    command.add_argument("--master", default="local[*]", help="Spark's (default: local[*])")
    command.add_argument("--runs", type=Path, default=Path("runs"), help="(default: runs)")
    options = command.parse_args()
    ways = [options.inside] if options.inside else [*WAYS]
    if options.repeat:
        outcome = tried(ways[0], options.seed, options.repeat)
        print(outcome.wrong or "nothing is wrong")
        return outcome.wrong is not None
    well = [run_all(way, options.seed, options.pairs, options.runs, options.master) for way in ways]
    return not all(well)


if __name__ == "__main__":
    start(main)
