"""Try all that is hostile: input, drawn files, changed logs, bad protocols, signals at any moment."""

import argparse
import sys
import time
from collections.abc import Callable

from scripts import parser
from scripts.hostility.cases import Bench, read_corpus
from scripts.hostility.files import try_files
from scripts.hostility.mutations import unnoticed
from scripts.hostility.protocols import ENGINES, LIMIT_S, attempt, attempts
from scripts.hostility.remains import can_emulate, in_guest
from scripts.hostility.signals import COMMANDS, Range, shots
from scripts.searches import bar

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
        wrong += bool(in_guest("--only", "signals", *words))
    fired = list(shots(commands, options.moments, options.seed))
    with bar("signals", "moments", len(fired)) as tell:
        for number, shot in enumerate(fired, start=1):
            if told := where.fire(shot):
                wrong += 1
                print(f"{shot}: {told}", flush=True)
            tell(number)
    print(f"signals: {len(fired)} sent, {wrong} did harm")
    return wrong


def try_protocols(options: argparse.Namespace) -> int:
    """Every bad protocol on the engines; how many do not end as they must, those in a guest as one."""
    engines = [*options.engines]
    if "mininet" not in engines or can_emulate():
        return _try_protocols(engines, options)
    engines.remove("mininet")
    wrong = _try_protocols(engines, options) if engines else 0
    words = ["--match", options.match, "--limit", str(options.limit)]
    words += ["--verbose"] if options.verbose else []
    return wrong + bool(in_guest("--only", "protocols", "--engines", "mininet", *words))


def _try_protocols(engines: list[str], options: argparse.Namespace) -> int:
    tried, wrong, longest = attempts(engines, options.match), 0, 0.0
    with bar("protocols", "protocols", len(tried)) as tell:
        for number, (name, engine) in enumerate(tried, start=1):
            outcome = attempt(name, engine, options.limit)
            longest = max(longest, outcome.seconds)
            if outcome.wrong or options.verbose:
                took = f"{outcome.seconds:.1f} s, {outcome.processor_s:.1f} of processor"
                verdict = outcome.wrong or "as asked"
                print(f"{name}, {engine}, {took}: {verdict}: {outcome.said}", flush=True)
            wrong += bool(outcome.wrong)
            tell(number)
    print(f"protocols: {len(tried)} tried, {wrong} not as asked, longest {longest:.0f} s")
    return wrong


PARTS: dict[str, Callable[[argparse.Namespace], int]] = {
    "corpus": try_corpus,
    "files": try_drawn,
    "mutations": try_mutations,
    "protocols": try_protocols,
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
    arguments.add_argument(
        "--match", default="", help="cases or protocols whose name has this text"
    )
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
    arguments.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=["simulate"], help="for bad protocols"
    )
    arguments.add_argument(
        "--limit",
        type=float,
        default=LIMIT_S,
        help=f"seconds for one, more on a busy machine (default: {LIMIT_S})",
    )
    arguments.add_argument(
        "--verbose", action="store_true", help="also show what right ends of bad protocols say"
    )
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(main())
