"""Try all that is hostile: a corpus of input, drawn files, changed logs, signals at any moment."""

import argparse
import sys
import time
from collections.abc import Callable

from scripts import parser
from scripts.hostility.cases import Bench, read_corpus
from scripts.hostility.files import try_files
from scripts.hostility.mutations import unnoticed
from scripts.hostility.signals import COMMANDS, Range, fire_in_guest, shots
from scripts.searches import bar
from testbed.engines.mininet.kernel import machine
from testbed.errors import UserError

SLOW = ("mininet", "virtual", "setup")
SIGNALLED = [name for name in COMMANDS if name not in SLOW]


def try_corpus(options: argparse.Namespace) -> int:
    """Every case of the corpus, or one of so many; how many are wrong."""
    bench, wrong = Bench(), 0
    cases = [case for case in read_corpus() if options.match in case.name][:: options.every]
    try:
        with bar("corpus", "cases", len(cases)) as tell:
            for number, case in enumerate(cases, start=1):
                outcome = bench.attempt(case)
                if outcome.wrong:
                    wrong += 1
                    print(f"{case.name}: {outcome.wrong}", flush=True)
                tell(number)
    finally:
        bench.close()
    print(f"corpus: {len(cases)} cases, {wrong} wrong")
    return wrong


def try_drawn(options: argparse.Namespace) -> int:
    """Files drawn from the schema; how many kinds of tracebacks they led to."""
    came, tracebacks = try_files(options.files)
    for where, document in tracebacks.items():
        print(f"{where}\n{document}", flush=True)
    outcomes = ", ".join(f"{count} {what}" for what, count in came.most_common())
    print(f"files: {outcomes}; {len(tracebacks)} tracebacks")
    return len(tracebacks)


def try_mutations(options: argparse.Namespace) -> int:
    """Changes of the logs of runs; how often a command did not notice one."""
    wrong = 0
    for told in unnoticed(options.mutations, options.seed):
        wrong += 1
        print(told, flush=True)
    print(
        f"mutations: {options.mutations} of logs, unnoticed {wrong} times by one of four commands"
    )
    return wrong


def try_signals(options: argparse.Namespace) -> int:
    """Signals at random moments of commands; how many did harm."""
    where, wrong, commands = Range(), 0, [*options.commands]
    if "mininet" in commands and not can_emulate():
        commands.remove("mininet")
        words = ("--commands", "mininet", "--moments", options.moments, "--seed", options.seed)
        wrong += bool(fire_in_guest([*map(str, words)]))
    fired = list(shots(commands, options.moments, options.seed))
    with bar("signals", "moments", len(fired)) as tell:
        for number, shot in enumerate(fired, start=1):
            if told := where.fire(shot):
                wrong += 1
                print(f"{shot}: {told}", flush=True)
            tell(number)
    print(f"signals: {len(fired)} sent, {wrong} did harm")
    return wrong


def can_emulate() -> bool:
    """Whether Mininet runs on this machine as it is."""
    try:
        machine.check()
    except UserError:
        return False
    return True


PARTS: dict[str, Callable[[argparse.Namespace], int]] = {
    "corpus": try_corpus,
    "files": try_drawn,
    "mutations": try_mutations,
    "signals": try_signals,
}


def main() -> int:
    """Try all parts, or those that are named."""
    options = _options()
    wrong = 0
    for part in options.only or PARTS:
        begun = time.monotonic()
        wrong += PARTS[part](options)
        print(f"{part}: {time.monotonic() - begun:.0f} s")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    arguments = parser("hostile", __doc__ or "")
    arguments.add_argument("--only", action="append", choices=PARTS, help="this part alone")
    arguments.add_argument("--match", default="", help="cases whose name has this text")
    arguments.add_argument(
        "--every", type=int, default=1, help="one of so many cases (default: all)"
    )
    arguments.add_argument(
        "--files", type=int, default=10_000, help="files to draw (default: 10000)"
    )
    arguments.add_argument(
        "--mutations", type=int, default=200, help="changes of logs (default: 200)"
    )
    arguments.add_argument("--moments", type=int, default=20, help="of each command (default: 20)")
    arguments.add_argument("--seed", type=int, default=1, help="of mutations and moments")
    arguments.add_argument(
        "--commands", nargs="+", choices=COMMANDS, default=SIGNALLED, help="to send signals to"
    )
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(main())
