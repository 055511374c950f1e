"""``testbed explore``: try everything that can happen in a small system."""

import argparse
from pathlib import Path
from typing import Any

import tomli_w
from rich.console import Console
from rich.markup import escape

from testbed.commands.terminal import console, print_json, progress_bar
from testbed.errors import UserError
from testbed.explore import LIMIT, CounterExample, Exploration, explore
from testbed.explore.diagram import Diagram
from testbed.explore.experiment import document
from testbed.explore.recorder import Act
from testbed.plugins import find_protocol, reference
from testbed.protocols import PROTOCOLS, Protocol
from testbed.protocols.broken import BROKEN

STATUS = {"valid": 0, "invalid": 1, "unknown": 2}
NARROWEST, WIDEST = 60, 100
CHOICES = {
    "fifo": "a channel keeps the order of its messages",
    "answers": "applications may multicast while a message is being delivered to them",
    "subsets": "messages go to any set of others too, if the protocol can do that",
}
_TO = {"all": "", "sets": " to any others or to all", "groups": " to groups of two"}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explore",
        description="Try every execution of a small system: any process may multicast at any moment, "
        "answer a message while it is being delivered, and be handed messages in any order that the "
        "channels allow. A message goes to everybody, or to any set of others as well, or to any of "
        "its sender's groups, as the protocol has it; groups are pairs, in a ring. Either all keep "
        "causal order and deliver everything, or the shortest that does not is drawn, and the oracle "
        "says what is wrong with it. A protocol is not live if it comes to where a message can never "
        "be delivered, though something goes on for ever. Exit status: 0 all were tried and are right, "
        "1 one is wrong, 2 there are too many to try.",
        epilog=f"Protocols: {', '.join(PROTOCOLS)}. Each of these has a mistake to find: "
        f"{', '.join(BROKEN)}.",
    )
    parser.add_argument(
        "--protocol", required=True, metavar="NAME", help="protocol to try; also ./mine.py:Mine"
    )
    parser.add_argument("--nodes", type=int, default=3, help="number of processes (default: 3)")
    parser.add_argument(
        "--messages", type=int, default=4, help="messages to multicast in all, at most (default: 4)"
    )
    for option, what in CHOICES.items():
        parser.add_argument(
            f"--{option}",
            action=argparse.BooleanOptionalAction,
            default=True,
            help=f"whether {what} (default: yes)",
        )
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help=f"states to visit at most (default: {LIMIT:,})"
    )
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="write a counter-example as an experiment file, for `testbed run` and `testbed live`",
    )
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Explore, and show what came of it."""
    protocol = find_protocol(options.protocol)
    if protocol.optimistic:
        raise UserError(
            f"{protocol.name} may lose messages, which explore takes for a mistake; "
            f"`testbed fuzz --protocol {protocol.name}` tries it"
        )
    for name, least in (("nodes", 2), ("messages", 1), ("limit", 1)):
        if (value := getattr(options, name)) < least:
            raise UserError(f"--{name} {value}: must be at least {least}")
    with progress_bar(protocol.name) as progress:
        result = explore(
            protocol,
            options.nodes,
            options.messages,
            fifo=options.fifo,
            answers=options.answers,
            subsets=options.subsets,
            limit=options.limit,
            progress=progress,
        )
    if options.json:
        print_json(to_json(result))
    else:
        show(result, console())
    if options.save and result.counter_example:
        save(result, protocol, options.save)
        if not options.json:
            print(f"saved: testbed live {options.save} steps through it, testbed run repeats it")
    return STATUS[result.verdict]


def save(result: Exploration, protocol: type[Protocol], file: Path) -> None:
    """Write the counter-example as an experiment, once it has gone wrong in the simulator too."""
    from testbed.live.session import Session

    content = document(result, protocol, reference(protocol))
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(tomli_w.dumps(content))
    except FileExistsError:
        raise UserError(f"{file} exists already; --save takes a new name") from None
    if Session(file).run(0, [])["verdict"] != "invalid":
        file.unlink()
        raise UserError(f"{file} is not written: at its own pace the protocol does nothing wrong")


def show(result: Exploration, out: Console) -> None:
    """The verdict, the figures, and the counter-example if there is one."""
    system = f"{result.nodes} processes, {_many(result.messages, 'message')}"
    channels = "FIFO channels" if result.fifo else "channels in any order"
    answers = "" if result.answers else ", no answers while delivering"
    to = _TO[result.to]
    out.print(f"[bold]{result.protocol}[/]: {system}{to}, {channels}{answers}", soft_wrap=True)
    found = result.found
    if result.counter_example:
        _show_example(result, result.counter_example, out)
    elif found.complete:
        count = f"{found.schedules:,}"
        schedules = f"{count} schedules" if found.exact else f"schedules (more than {count})"
        out.print(
            f"[bold green]valid[/]: complete; all {schedules} are right "
            f"({found.states:,} states, {found.steps:,} steps)",
            soft_wrap=True,
        )
    else:
        out.print(
            f"[bold yellow]unknown[/]: incomplete; nothing is wrong in {found.states:,} states, but "
            f"there are more; raise --limit, or try --messages {max(1, result.messages - 1)}",
            soft_wrap=True,
        )


def _show_example(result: Exploration, example: CounterExample, out: Console) -> None:
    how = "not live" if example.circle else "invalid"
    out.print(f"[bold red]{how}[/]: {escape(example.wrong.sentence)}\n", soft_wrap=True)
    diagram = Diagram(result.nodes, example)
    for line in diagram.lines(min(max(out.width, NARROWEST), WIDEST)):
        out.print(line, soft_wrap=True)
    out.print()
    for note in diagram.legend():
        out.print(note, markup=False, soft_wrap=True)
    if example.circle:
        last = "moment repeats" if example.circle == 1 else f"{example.circle} moments repeat"
        out.print(
            f"\nthe last {last} for ever; whatever happens instead, it is never delivered",
            soft_wrap=True,
        )
    for sentence in example.oracle:
        out.print(f"\nthe oracle: {sentence}", markup=False, soft_wrap=True)


def to_json(result: Exploration) -> dict[str, Any]:
    """The result in plain data."""
    found, example = result.found, result.counter_example
    return {
        "protocol": result.protocol,
        "nodes": result.nodes,
        "messages": result.messages,
        "fifo": result.fifo,
        "answers": result.answers,
        "to": result.to,
        "verdict": result.verdict,
        "complete": found.complete,
        "states": found.states,
        "steps": found.steps,
        "schedules": found.schedules,
        "schedules_exact": found.exact,
        "counter_example": example and _example_json(example),
    }


def _example_json(example: CounterExample) -> dict[str, Any]:
    return {
        "wrong": example.wrong.sentence,
        "at": example.at,
        "circle": example.circle,
        "moments": [
            {
                "process": moment.process,
                "sender": moment.sender,
                "received": moment.received,
                "timer": None if moment.timer is None else str(moment.timer),
                "events": [_act_json(act) for act in moment.did.events],
                "held": [[*name, *(waits_for or ())] for name, waits_for in moment.did.held],
                "failure": moment.did.failure,
            }
            for moment in example.moments
        ],
        "oracle": example.oracle,
        "verdict": example.verdict and example.verdict.to_json(),
    }


def _act_json(act: Act) -> list[Any]:
    to = [] if act.kind != "send" else [act.to and sorted(act.to)]
    return [act.kind, *act.name, *to]


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"up to {count} {thing}s"
