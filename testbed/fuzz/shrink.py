"""Makes an experiment that goes wrong as small as possible: delta debugging on its document.

A change is kept if the same kind of violation still occurs: fewer messages (halves, quarters and so on
down to single ones), fewer faults, fewer nodes, and default values for what is left; times instead of
triggers; finally nothing that is left to chance, so that the other engines repeat it too. A smaller
network has other delays, so some other seeds are tried for it as well. Shrinking ends when no change
helps, or after ``TRIALS``.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from copy import deepcopy
from itertools import product
from typing import Any

from testbed.fuzz.elements import SMALL, Document, nodes_of
from testbed.fuzz.profiles import profile_of
from testbed.fuzz.trial import COSTLY, Triggered, attempt
from testbed.plugins import find_protocol
from testbed.workloads.script import without

TRIALS = 3000
COSTLY_TRIAL = 1000  # what a trial counts that lasts until it is stopped
OTHER_SEEDS = range(1, 9)
SEEDS_WITHOUT_FAULTS = range(1, 65)
VARIED = {"delay_ms": [0.0, 10.0]}
BEGINNINGS_MS = (0.1, 0.6, 1.1, 1.6, 2.1, 3.1, 5.1, 10.1, 20.1)
LENGTHS_MS = (0.4, 1.4, 5.4, 20.4)
LONGER = (2, 4, 8)

# The values that are tried for a table, the simplest first.
_SIMPLE: dict[str, list[Any]] = {
    "channel": ["raw"],
    "links": [{"delay_ms": 1.0}, {"delay_ms": [0.0, 1.0]}, VARIED],
    "transport": [None],
    "overlay": [{"model": "complete"}, {"model": "ring"}],
}


class Shrinker:
    """Holds the smallest experiment found so far that goes wrong in a given way."""

    def __init__(self, document: Document, wrong: str, trials: int = TRIALS) -> None:
        self.document = document
        self.wrong = wrong
        self.left = trials
        self.triggered: tuple[Triggered, ...] = ()

    def shrink(self) -> Document:
        """Shrink the experiment, and return the smallest one found."""
        if self.left > 0 and (trial := attempt(self.document)) is not None:
            self.triggered = trial.triggered
        before = None
        while before != self.document and self.left > 0:
            before = self.document
            if nodes_of(self.document) > SMALL:  # first, as long as many messages may go wrong
                self._try_all(fewer_nodes_elsewhere)
            self._fewer_messages()
            for changes in (
                fewer_faults,
                fewer_nodes,
                fewer_groups,
                plain_values,
                plain_script,
                plain_faults,
            ):
                self._try_all(changes)
            self._try_all(lambda document: faults_at_times(document, self.triggered))
            self._try_all(fewer_messages_elsewhere)
            self._try_all(fewer_messages_with_longer_waits)
            self._try_all(smaller_elsewhere)
            self._try_all(certain_faults)
        return self.document

    def _fewer_messages(self) -> None:
        size = len(self.document["workload"]["send"])
        while size:
            start = 0
            while start < len(self.document["workload"]["send"]):
                if not self._keep(fewer_messages(self.document, range(start, start + size))):
                    start += size
            size //= 2

    def _try_all(self, changes: Callable[[Document], Iterator[Document]]) -> None:
        """Keep the first change that still goes wrong, and look for more from there."""
        while any(self._keep(changed) for changed in changes(self.document)):
            pass

    def _keep(self, changed: Document) -> bool:
        if changed == self.document or self.left <= 0:
            return False
        trial = attempt(changed)
        self.left -= COSTLY_TRIAL if trial and trial.wrong in COSTLY else 1
        if trial is None or trial.wrong != self.wrong:
            return False
        self.document, self.triggered = changed, trial.triggered
        return True


def fewer_messages(document: Document, gone: Collection[int]) -> Document:
    """Drop these messages and the answers to them."""
    changed = deepcopy(document)
    changed["workload"]["send"] = without(document["workload"]["send"], gone)
    return changed


def fewer_faults(document: Document) -> Iterator[Document]:
    """Drop one of the faults."""
    faults = document["fault"]
    for index in range(len(faults)):
        yield {**document, "fault": faults[:index] + faults[index + 1 :]}


def fewer_nodes(document: Document) -> Iterator[Document]:
    """Drop nodes and all that names them, half of them or fewer; as a complete graph, if need be."""
    topology, nodes = document["topology"], nodes_of(document)
    size = max(1, nodes // 2)
    while size:
        tables = [complete(nodes - size)]
        if "nodes" in topology:
            tables.insert(0, {**topology, "nodes": nodes - size})
        for last in range(nodes, size - 1, -size):
            fewer = document
            for gone in reversed(range(last - size, last)):
                fewer = _without_node(fewer, gone)
            yield from ({**fewer, "topology": table} for table in tables)
        size //= 2


def fewer_nodes_elsewhere(document: Document) -> Iterator[Document]:
    """Drop nodes, and try other seeds."""
    for changed in fewer_nodes(document):
        yield from ({**changed, "seed": seed} for seed in (document["seed"], *OTHER_SEEDS))


def fewer_groups(document: Document) -> Iterator[Document]:
    """Drop one of the groups and all messages to it, or one of its members."""
    members = document.get("groups", {}).get("members", {})
    send = document["workload"]["send"]
    for name, group in members.items():
        to_it = [number for number, message in enumerate(send) if message.get("group") == name]
        fewer = {other: group for other, group in members.items() if other != name}
        yield {**fewer_messages(document, to_it), "groups": {"model": "named", "members": fewer}}
        for gone in group:
            fewer = {**members, name: [node for node in group if node != gone]}
            yield {**document, "groups": {"model": "named", "members": fewer}}


def fewer_messages_elsewhere(document: Document) -> Iterator[Document]:
    """Drop many messages at once, and try other seeds: what meets by chance may meet again."""
    most = len(document["workload"]["send"])
    for size in (most // 2, most // 4):
        for start in range(0, most if size > 1 else 0, max(1, size)):
            fewer = fewer_messages(document, range(start, start + size))
            yield from ({**fewer, "seed": seed} for seed in OTHER_SEEDS)


def fewer_messages_with_longer_waits(document: Document) -> Iterator[Document]:
    """Drop many messages at once while a protocol waits longer for those who are away.

    If each message is late by that, fewer are too late in the end.
    """
    settings, send = document["protocol"], document["workload"]["send"]
    if "grace_ms" not in settings:
        return
    profile = profile_of(find_protocol(settings["name"]))
    for factor, share in product(LONGER, (2, 3, 4)):
        protocol = {**settings, "grace_ms": factor * settings["grace_ms"]}
        size = len(send) // share
        for start in range(0, len(send) if size else 0, max(1, size)):
            fewer = fewer_messages(document, range(start, start + size))
            yield profile.settled({**fewer, "protocol": protocol})


def smaller_elsewhere(document: Document) -> Iterator[Document]:
    """Drop nodes, a message or a fault, and try other seeds, with the same links or varied ones."""
    messages = range(len(document["workload"]["send"]))
    if document["fault"]:
        for seed in SEEDS_WITHOUT_FAULTS:
            yield {**document, "fault": [], "channel": "raw", "seed": seed, "links": VARIED}
    smaller = [*fewer_nodes(document), *(fewer_messages(document, [n]) for n in messages)]
    smaller += fewer_faults(document)
    for seed in OTHER_SEEDS:
        for changed in smaller:
            yield {**changed, "seed": seed, "links": VARIED}
            if document["links"] != VARIED:
                yield {**changed, "seed": seed}


def plain_values(document: Document) -> Iterator[Document]:
    """Simplify one of the tables, or drop protocol settings."""
    nodes = document["topology"].get("nodes", 0)
    topologies = [complete(nodes), {"model": "line", "nodes": nodes}]
    for table, values in {"topology": topologies, **_SIMPLE}.items():
        if table not in document:
            continue
        now = document[table]
        for value in values[: values.index(now)] if now in values else values:
            rest = {key: content for key, content in document.items() if key != table}
            yield rest if value is None else {**rest, table: value}
    settings = document["protocol"]
    if len(settings) > 1:
        yield {**document, "protocol": {"name": settings["name"]}}
    for gone in [key for key in settings if key != "name"]:
        yield {**document, "protocol": {k: v for k, v in settings.items() if k != gone}}


def plain_script(document: Document) -> Iterator[Document]:
    """Send a message at the start or at a whole millisecond, to all, or without payload."""
    for index, line in enumerate(document["workload"]["send"]):
        simpler = [{k: v for k, v in line.items() if k != key} for key in ("payload_bytes", "to")]
        if at := line.get("at_ms"):
            simpler += [{**line, "at_ms": t} for t in (0.0, float(round(at))) if t < at]
        for changed in simpler:
            yield _replaced(document, ("workload", "send"), index, changed)


def plain_faults(document: Document) -> Iterator[Document]:
    """Let a fault last to the end, begin at the start, take a whole number, or affect all packets."""
    for index, fault in enumerate(document["fault"]):
        simpler = [{k: v for k, v in fault.items() if k != key} for key in ("for_ms", "at_ms")]
        for key in ("for_ms", "late_ms", "factor"):
            if key in fault and fault[key] != round(fault[key]):
                simpler.append({**fault, key: float(round(fault[key]) or 1)})
        if fault.get("rate", 1.0) != 1.0 and fault["kind"] != "loss":
            simpler.append({**fault, "rate": 1.0})
        for changed in simpler:
            yield _replaced(document, ("fault",), index, changed)


def certain_faults(document: Document) -> Iterator[Document]:
    """Let a fault affect all packets of a short period, instead of some that are drawn.

    Engines draw differently; what is certain happens on all of them.
    """
    nodes = document["topology"].get("nodes", 0)
    links = [[a, b] for a in range(nodes) for b in range(a + 1, nodes)]
    for index, fault in enumerate(document["fault"]):
        if fault.get("rate", 1.0) == 1.0:
            continue
        timeless = {k: v for k, v in fault.items() if k not in ("for_ms", "at_ms", "when", "per_s")}
        for link in [fault["link"]] if "link" in fault else links:
            for at, length in product(BEGINNINGS_MS, LENGTHS_MS):
                while_ = {"link": link, "rate": 1.0, "at_ms": at, "for_ms": length}
                yield _replaced(document, ("fault",), index, {**timeless, **while_})


def faults_at_times(document: Document, triggered: Iterable[Triggered]) -> Iterator[Document]:
    """Let a fault begin at the time and at the process of its trigger, just after it."""
    for index, node, at in triggered:
        fault = {k: v for k, v in document["fault"][index].items() if k != "when"}
        fault["at_ms"] = (at // 1000 + 1) / 1000
        if fault.get("node") == "same":
            fault["node"] = node
        if fault.get("nodes") == "same":
            fault["nodes"] = [node]
        yield _replaced(document, ("fault",), index, fault)


def complete(nodes: int) -> dict[str, Any]:
    """A complete graph."""
    return {"model": "pure-random", "nodes": nodes, "edge_probability": 1.0}


def _replaced(document: Document, path: tuple[str, ...], index: int, value: Any) -> Document:
    changed = deepcopy(document)
    table = changed
    for key in path:
        table = table[key]
    table[index] = value  # type: ignore[index]
    return changed


def _without_node(document: Document, gone: int) -> Document:
    def moved(node: int) -> int:
        return node - (node > gone)

    send = document["workload"]["send"]
    changed = fewer_messages(document, [n for n, line in enumerate(send) if line["node"] == gone])
    for line in changed["workload"]["send"]:
        line["node"] = moved(line["node"])
        if "to" in line:
            line["to"] = [moved(node) for node in line["to"] if node != gone]
    changed["fault"] = [
        _moved_fault(fault, gone, moved)
        for fault in document["fault"]
        if gone not in _nodes_of(fault) and fault.get("nodes") != [gone]
    ]
    for name, group in changed.get("groups", {}).get("members", {}).items():
        changed["groups"]["members"][name] = [moved(node) for node in group if node != gone]
    return changed


def _nodes_of(fault: dict[str, Any]) -> set[Any]:
    """The nodes without which a fault has no meaning."""
    return {fault.get("node"), fault.get("when", {}).get("node"), *fault.get("link", ())}


def _moved_fault(fault: dict[str, Any], gone: int, moved: Callable[[int], int]) -> dict[str, Any]:
    changed = deepcopy(fault)
    for table in (changed, changed.get("when", {})):
        if isinstance(table.get("node"), int):
            table["node"] = moved(table["node"])
    for key in ("link", "nodes"):
        if isinstance(nodes := fault.get(key), list):
            changed[key] = [moved(node) for node in nodes if node != gone]
    return changed
