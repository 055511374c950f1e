"""Event logs in memory: each node's sends and deliveries in that node's own order, compactly.

A message is named (source, seq) and gets a number where it first appears; a log is a column of
numbers (a send is stored as ~number) and a column of times. A line that cannot be read is counted and
makes the logs that it may belong to *doubtful*: what such a log lacks proves nothing.
"""

import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from testbed.check.tickets import Claim, Stamp, integer, read_claim, read_stamp
from testbed.errors import read_text
from testbed.progress import Tick

Name = tuple[int, int]

MALFORMED_KEPT = 100
REASON_KEPT = 200
LINES_PER_TICK = 1 << 14
WISHES = ("join", "leave", "crash", "restart")
_LISTS = (list, tuple, set, frozenset)
_decode = json.JSONDecoder().raw_decode


class Event(NamedTuple):
    """One event of a node, for logs made in memory; events of other names are ignored."""

    event: str
    source: int = -1
    seq: int = -1
    to: Collection[int] | None = None
    t: int = 0
    facts: Mapping[str, Any] | None = None  # the keys that only some events have

    def line(self) -> Mapping[str, Any]:
        """As it would be read from a file."""
        return self._asdict() if self.facts is None else {**self._asdict(), **self.facts}


class Malformed(NamedTuple):
    """A line that could not be used."""

    file: str
    line: int
    reason: str


class LineError(ValueError):
    """A line that cannot be used, and its node if that is known."""

    def __init__(self, reason: str, node: int | None = None) -> None:
        super().__init__(reason)
        self.node = node


class Move(NamedTuple):
    """From ``position`` in its log on a node is interested in a cluster, or is not."""

    t: int
    position: int
    cluster: int
    interested: bool
    begins: bool  # as a process that was so from its start on


class NodeLog:
    """What one node did; ``crash`` is the number of sends and deliveries before its first crash.

    A restarted node is a new process: this is its log since then, and ``restarted``. One that has
    left is ``away``; ``joins`` are the positions at which it asked to be a member again. ``moves`` say
    in which clusters it is interested, if there are several.
    """

    __slots__ = (
        *("away", "crash", "events", "held", "held_times", "joins", "moves", "restarted", "times"),
    )

    def __init__(self) -> None:
        self._clear()
        self.crash: int | None = None
        self.restarted = False

    def restart(self) -> Self:
        """Begin the log of a restarted node; the log before, which ended in a crash."""
        before = copy(self)
        before.crash = len(self.events) if self.crash is None else self.crash
        self._clear()
        self.crash, self.restarted = None, True
        return before

    def _clear(self) -> None:
        self.events, self.times = array("i"), array("q")
        self.held, self.held_times = array("i"), array("q")  # what was held back
        self.away, self.joins = False, array("i")
        self.moves: list[Move] = []


class Logs:
    """The logs of a run's nodes, as far as they could be read."""

    def __init__(self, nodes: Iterable[int]) -> None:
        self.nodes = tuple(sorted(set(nodes)))
        self.of: dict[int, NodeLog] = {}
        self.home: dict[int, int] = {}  # the node of what had crashed before, in ``of`` as well
        self.numbers: dict[Name, int] = {}
        self.to: dict[int, Collection[int] | None] = {}  # of each message sent
        self.forged: list[tuple[int, int]] = []  # (node, number)
        self.resent: list[tuple[int, int]] = []
        self.clusters: dict[int, int] = {}  # of each message, if there are several
        self.tickets: dict[int, list[Claim | Stamp]] = defaultdict(list)  # by node
        self.wishes: dict[int, list[tuple[int, str]]] = defaultdict(list)  # by node: join, crash, …
        self.malformed = 0
        self.malformed_lines: list[Malformed] = []
        self.doubtful: set[int] = set()
        self.missing: set[int] = set()
        self.problems: list[str] = []
        self._known = frozenset(self.nodes)

    def add(self, log: NodeLog, node: int, line: Mapping[str, Any]) -> None:
        """Append one event to a node's log."""
        try:
            event = line["event"]
            if event in WISHES and type(t := line.get("t")) is int:
                self.wishes[node].append((t, event))
            if event == "deliver":
                number = self._number(line["source"], line["seq"])
                log.times.append(line["t"])
                log.events.append(number)
            elif event == "send":
                self._send(log, node, line)
            elif event == "hold":
                self._hold(log, line)
            elif event == "stamp":
                self.tickets[node].append(read_stamp(node, line))
            elif event == "tickets":
                self.tickets[node].append(read_claim(line))
            elif event == "crash":
                log.crash = len(log.events) if log.crash is None else log.crash
                self._disown(node, line)
            elif event == "restart":
                self._disown(node, line)
                process = min(0, self.nodes[0]) - len(self.home) - 1  # a number that no node has
                self.of[process], self.home[process] = log.restart(), node
            elif event == "cluster":
                number = self._number(line["source"], line["seq"])
                self.clusters[number] = integer(line["cluster"])
            elif event == "interest":
                cluster, interested = integer(line["cluster"]), bool(line["interested"])
                when = integer(line["t"]), len(log.events)
                log.moves.append(Move(*when, cluster, interested, bool(line.get("begins"))))
            elif event == "leave":
                log.away = True
            elif event == "join" and log.away:
                log.away = False
                log.joins.append(len(log.events))
        except KeyError as error:
            raise LineError(f"no {error.args[0]!r}", node) from None
        except (TypeError, OverflowError) as error:
            raise LineError(str(error), node) from None

    @property
    def crashes(self) -> list[tuple[int, int]]:
        """The time and node of each crash."""
        return [
            (t, node) for node in self.wishes for t, what in self.wishes[node] if what == "crash"
        ]

    @property
    def end(self) -> int:
        """The latest time of any send, delivery, claim, join, leave or crash."""
        times = [log.times[-1] for log in self.of.values() if log.times]
        times += [lines[-1].t for lines in self.tickets.values() if lines]
        return max((*times, *(some[-1][0] for some in self.wishes.values() if some)), default=0)

    def node(self, process: int) -> int:
        """The node of a process: itself, but for processes that crashed and have a successor."""
        return self.home.get(process, process)

    def reject(self, file: str, line: int, reason: str) -> None:
        """Count a line that could not be used."""
        self.malformed += 1
        if len(self.malformed_lines) < MALFORMED_KEPT:
            self.malformed_lines.append(Malformed(file, line, reason[:REASON_KEPT]))

    def _number(self, source: object, seq: object) -> int:
        if type(source) is not int or type(seq) is not int:  # True == 1 and 1.0 == 1 must not pass
            raise TypeError(f"a message is named by two integers, not by {source!r}, {seq!r}")
        return self.numbers.setdefault((source, seq), len(self.numbers))

    def _send(self, log: NodeLog, node: int, line: Mapping[str, Any]) -> None:
        number, to = self._number(line["source"], line["seq"]), line["to"]
        if not (to is None or (isinstance(to, _LISTS) and all(map(self.knows, to)))):
            raise TypeError("'to' is neither null nor a list of the run's nodes")
        if line["source"] != node:
            self.forged.append((node, number))
        elif number in self.to:
            self.resent.append((node, number))
        else:
            log.times.append(line["t"])
            log.events.append(~number)
            self.to[number] = to

    def _hold(self, log: NodeLog, line: Mapping[str, Any]) -> None:
        """Record when a message was held back; this proves no order, so a bad line is skipped."""
        try:
            number = self._number(line["source"], line["seq"])
            log.held_times.append(line["t"])
        except (KeyError, TypeError, OverflowError):
            return
        log.held.append(number)

    def _disown(self, node: int, line: Mapping[str, Any]) -> None:
        """A node that has crashed owns no ticket."""
        if node in self.tickets:
            self.tickets[node].append(read_claim({"t": line["t"], "owns": None}))

    def knows(self, node: object) -> bool:
        """Whether the run has this node."""
        return type(node) is int and node in self._known


def logs_in_memory(nodes: Iterable[int], events: Mapping[int, Sequence[Event]]) -> Logs:
    """Take logs as they are; a node without one is taken to have lost it."""
    logs = Logs(nodes)
    if strangers := sorted(set(events) - set(logs.nodes)):
        raise ValueError(f"events of {strangers}, which are not among the nodes")
    for node in logs.nodes:
        if node not in events:
            logs.missing.add(node)
            continue
        log = logs.of[node] = NodeLog()
        for index, event in enumerate(events[node], 1):
            try:
                logs.add(log, node, event.line())
            except LineError as error:
                logs.reject(f"node {node}", index, str(error))
                logs.doubtful.add(node)
    return logs


def read_nodes(path: Path) -> list[int]:
    """The nodes that ``network.json`` lists."""
    try:
        nodes = [node["id"] for node in json.loads(read_text(path))["nodes"]]
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ValueError(f"{path}: not an object with a list of nodes, each with an id") from None
    if not all(type(node) is int for node in nodes):
        raise ValueError(f"{path}: a node's id must be an integer")
    return nodes


def read_logs(nodes: Iterable[int], files: Sequence[Path], progress: Tick) -> Logs:
    """Read event files; ``progress`` is given bytes read and bytes in all."""
    logs = Logs(nodes)
    total = sum(file.stat().st_size for file in files)
    done = 0
    for file in files:
        _FileReader(logs, file, partial(_tell, progress, done, total)).read()
        done += file.stat().st_size
        progress(done, total)
    # A node may have nothing to say. But if its file may be gone, or its lines may be among those
    # that could not be read, then its silence proves nothing.
    shared = len(files) == 1 and len(logs.of) > 1 + len(logs.home)
    if logs.malformed or not (shared or len(files) >= len(logs.nodes)):
        logs.missing.update(set(logs.nodes) - set(logs.of))
    return logs


def _tell(progress: Tick, before: int, total: int, at: int) -> None:
    progress(before + at, total)


@dataclass
class _FileReader:
    """Reads one file, with the lines of one node or many."""

    logs: Logs
    path: Path
    progress: Callable[[int], None]
    here: dict[int, NodeLog] = field(default_factory=dict)

    def read(self) -> None:
        """Add all lines to the logs."""
        unattributed = False
        for number, reason, node in self._bad_lines():
            self.logs.reject(self.path.name, number, reason)
            if node is None:
                unattributed = True
            else:
                self.logs.doubtful.add(node)
        if unattributed:
            self.logs.doubtful.update(self.here)
            if not self.here:
                self.logs.problems.append(f"{self.path.name}: not one line can be used")

    def _bad_lines(self) -> Iterable[tuple[int, str, int | None]]:
        number = 0
        try:
            with self.path.open("rb") as file:
                for number, raw in enumerate(file, 1):
                    try:
                        self._line(raw)
                    except LineError as error:
                        yield number, str(error), error.node
                    if number % LINES_PER_TICK == 0:
                        self.progress(file.tell())
        except OSError as error:
            yield number, error.strerror or "cannot be read", None

    def _line(self, raw: bytes) -> None:
        try:
            text = raw.decode().strip()
            line, end = _decode(text)
        except (ValueError, RecursionError):
            if raw.isspace():
                return
            raise LineError("not JSON" if raw.endswith(b"\n") else "cut off") from None
        if type(line) is not dict or end != len(text):
            raise LineError("not one JSON object")
        node: Any = line.get("node")
        log = self.here.get(node) if type(node) is int else None
        self.logs.add(log or self._open(node), node, line)

    def _open(self, node: Any) -> NodeLog:
        if not self.logs.knows(node):
            raise LineError(f"node {node!r} is not in network.json")
        if node in self.logs.of:  # which of the two came first cannot be told
            raise LineError(f"node {node} has its log in another file", node)
        self.here[node] = self.logs.of[node] = log = NodeLog()
        return log
