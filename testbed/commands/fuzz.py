"""``testbed fuzz``: try protocols on random networks with random faults, in the simulator."""

import argparse
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console

from testbed.commands.terminal import console, new_table, print_json, progress_bar
from testbed.errors import UserError
from testbed.fuzz import Batch, Example, Tally, batches, rounds, shrunk, try_batch, write_example
from testbed.fuzz.coverage import states
from testbed.plugins import find_protocol, reference
from testbed.protocols import PROTOCOLS
from testbed.protocols.broken import BROKEN


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "fuzz",
        description="Draw from each seed a network, mostly a small one, messages and answers, and "
        "faults that a protocol promises to survive; simulate it, and let the oracle judge it. Of the "
        "daisy, a seed is a dozen runs or more: storms are tried too, in which much is said when "
        "somebody goes or comes back, and mutants, also of scenes in which the daisy once went wrong: "
        "a few things are changed, so that messages and faults meet. Of a protocol with a table of "
        "states, say what was reached of it. "
        "For each protocol that fails, the first failure is made as small as possible and written as "
        "an experiment file, which `testbed run` repeats exactly. Exit status: 0 nothing went wrong, "
        "1 something did, 2 it could not be tried.",
        epilog=f"Protocols: {', '.join(PROTOCOLS)}. Each of these has a mistake to find: "
        f"{', '.join(BROKEN)}.",
    )
    parser.add_argument(
        "--protocol",
        action="append",
        metavar="NAME",
        help="which one to try, also ./mine.py:Mine; may be given several times (default: all of "
        "them)",
    )
    parser.add_argument(
        "--seeds", type=int, default=200, help="number of seeds for each protocol (default: 200)"
    )
    parser.add_argument("--first-seed", type=int, default=1, help="the first of them (default: 1)")
    parser.add_argument(
        "--large",
        action="store_true",
        help="draw only systems of 9 to 32 processes (default: mostly small ones)",
    )
    parser.add_argument(
        "--master",
        help="try the seeds with Spark, on local[*], all cores here, or on a cluster (default: in "
        "this process alone)",
    )
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path("runs"),
        help="experiment files are written to RUNS/fuzz (default: runs/fuzz)",
    )
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Try all seeds, then shrink what went wrong."""
    names = list(dict.fromkeys(reference(find_protocol(n)) for n in options.protocol or PROTOCOLS))
    if options.seeds < 1:
        raise UserError(f"--seeds {options.seeds}: must be at least 1")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tallies = {name: Tally(name) for name in names}
    examples: dict[str, tuple[Path, Example]] = {}
    with progress_bar("fuzz") as progress:
        for part in rounds(names, seeds):
            work = list(batches(tallies.values(), part, options.large))
            with closing(_try(work, options.master, tallies)) as results:
                for tally in results:
                    tallies[tally.protocol].add(tally)
                    tried = sum(tally.seeds for tally in tallies.values())
                    progress("seeds", tried, len(names) * len(seeds))
        wrong = [tally for tally in tallies.values() if tally.wrong]
        for done, tally in enumerate(wrong, 1):
            example = shrunk(tally.protocol, tally.first_wrong)
            examples[tally.protocol] = write_example(example, options.runs / "fuzz"), example
            progress("shrinking", done, len(wrong))
    if options.json:
        print_json([to_json(tally, examples.get(tally.protocol)) for tally in tallies.values()])
    else:
        show(list(tallies.values()), examples, console())
    return 1 if examples else 0


def _try(work: list[Batch], master: str | None, tallies: dict[str, Tally]) -> Generator[Tally]:
    if master is None:
        for batch in work:
            if not tallies[batch.protocol].hopeless:
                yield try_batch(batch)
    else:
        from testbed.spark.tasks import spread  # Spark takes a while to import

        yield from spread(try_batch, work, master)


def show(tallies: list[Tally], examples: dict[str, tuple[Path, Example]], out: Console) -> None:
    """A row for each protocol, then the smallest case of each that goes wrong."""
    labels = ("seeds", "runs", "violations", "messages", "deliveries", "faults")
    table = new_table(["protocol"], labels)
    for tally in tallies:
        tried = (tally.seeds, tally.runs, len(tally.wrong))
        figures = (*tried, tally.messages, tally.deliveries, tally.faults)
        table.add_row(tally.name, *(f"{figure:,}" for figure in figures))
    out.print(table)
    for tally in tallies:
        if tally.table:
            show_coverage(tally, out)
    for tally in tallies:
        if tally.protocol in examples:
            path, example = examples[tally.protocol]
            out.print(f"\n[bold red]{tally.name}[/], seed {tally.first_wrong.seed}: ", end="")
            out.print(example.trial.sentence, markup=False, soft_wrap=True)
            out.print(f"  repeat: testbed run {path} --no-digest", soft_wrap=True)
            out.print(f"  step through: testbed live {path}", soft_wrap=True)


def show_coverage(tally: Tally, out: Console) -> None:
    """How many states and transitions of a protocol's table were reached, and which were not."""
    missing = tally.coverage.missing(tally.table)
    out.print(
        f"{tally.name}: {len(states(tally.coverage))} of {len(states(tally.table))} states and "
        f"{len(tally.table) - len(missing)} of {len(tally.table)} transitions reached"
        + ("; not reached:" if missing else "")
    )
    for state, event, after in missing:
        out.print(f"  {state}, {event} → {after}", markup=False)


def to_json(tally: Tally, found: tuple[Path, Example] | None) -> dict[str, Any]:
    """What came of one protocol in plain data."""
    result: dict[str, Any] = {
        "protocol": tally.name,
        "seeds": tally.seeds,
        "runs": tally.runs,
        "messages": tally.messages,
        "deliveries": tally.deliveries,
        "faults": tally.faults,
        "wrong": {
            str(origin.seed): kind
            for origin, kind in sorted(tally.wrong.items(), key=lambda found: found[0].seed)
        },
        "transitions": len(tally.table),
        "not_reached": [list(row) for row in tally.coverage.missing(tally.table)],
        "example": None,
    }
    if found is not None:
        path, example = found
        result["example"] = {
            "file": str(path),
            "seed": tally.first_wrong.seed,
            "aimed_at": tally.first_wrong.state,
            "kind": example.trial.wrong,
            "sentence": example.trial.sentence,
        }
    return result
