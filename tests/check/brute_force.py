"""A second oracle, by brute force, and executions for both."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import networkx as nx
from hypothesis import strategies as st

from testbed.check import APART, VIOLATIONS, Event
from tests.check.events import CRASH, JOIN, LEAVE, Found, Logs, Name, deliver, hold, send


class Execution(NamedTuple):
    nodes: int
    logs: Logs


Spot = tuple[int, int]  # node, position in its log


class Brute:
    """The definitions, taken at their word: reachability in the graph of all events."""

    def __init__(self, execution: Execution) -> None:
        self.nodes, self.logs = execution
        self.found: dict[str, list[tuple[int, Name]]] = {k: [] for k in (*VIOLATIONS, *APART)}
        self.sends: dict[Name, Spot] = {}
        self.first: dict[tuple[int, Name], int] = {}
        self.crash: dict[int, int] = {}
        self.edges: nx.DiGraph[Any] = nx.DiGraph()
        self.scan()
        self.untie()
        reach = {spot: nx.descendants(self.edges, spot) for spot in self.sends.values()}
        self.before = {
            (x, y) for x in self.sends for y in self.sends if self.sends[y] in reach[self.sends[x]]
        }
        self.judge()

    def events(self) -> Iterable[tuple[int, int, Event, Name]]:
        for node, log in self.logs.items():
            for at, event in enumerate(log):
                yield node, at, event, (event.source, event.seq)

    def scan(self) -> None:
        for node, at, event, name in self.events():
            self.edges.add_edge((node, at - 1), (node, at))
            if event.event == "crash":
                self.crash.setdefault(node, at)
            elif event.event == "send" and event.source != node:
                self.found["forged"].append((node, name))
            elif event.event == "send" and name in self.sends:
                self.found["resent"].append((node, name))
            elif event.event == "send":
                self.sends[name] = (node, at)
            elif event.event == "deliver" and (node, name) in self.first:
                self.found["duplicate"].append((node, name))
            elif event.event == "deliver":
                self.first[node, name] = at

    def untie(self) -> None:
        """Link sends to deliveries, except to those that happened before their own send."""
        links = [
            (self.sends[name], (node, at))
            for node, at, event, name in self.events()
            if event.event == "deliver" and name in self.sends
        ]
        knotted = self.edges.copy()
        knotted.add_edges_from(links)
        for sent, (node, at) in links:
            if nx.has_path(knotted, (node, at), sent):
                name = self.logs[node][at].source, self.logs[node][at].seq
                self.found["cycle"] += [(node, name)] * (self.first[node, name] == at)
            else:
                self.edges.add_edge(sent, (node, at))

    def addressed(self, name: Name) -> set[int]:
        node, at = self.sends[name]
        to = self.logs[node][at].to
        return set(range(self.nodes)) if to is None else set(to)

    def causes(self, kind: str, node: int, effect: Name) -> set[Name]:
        def late(at: int | None) -> bool:
            return at is None if kind == "gap" else at is not None and at > self.first[node, effect]

        past = (x for x in self.sends if (x, effect) in self.before)
        if kind == "gap":
            past = (x for x in past if self.owed(x, node, self.first[node, effect]))
        return {x for x in past if node in self.addressed(x) and late(self.first.get((node, x)))}

    def owed(self, name: Name, node: int, upto: int) -> bool:
        """Whether a node had never been away by then, or its return was known to who sent this."""
        back = -1
        for at, event in enumerate(self.logs.get(node, [])[:upto]):
            back = at if event.event == "join" and self.was_away(node, at) else back
        since = [x for x, (sender, at) in self.sends.items() if sender == node and at > back]
        return back < 0 or any(x == name or (x, name) in self.before for x in since)

    def was_away(self, node: int, upto: int) -> bool:
        """Whether the node's last word on it was that it leaves."""
        words = [e.event for e in self.logs.get(node, [])[:upto] if e.event in ("leave", "join")]
        return words[-1:] == ["leave"]

    def judge(self) -> None:
        missing = set(range(self.nodes)) - set(self.logs)

        def add(kind: str, node: int, name: Name) -> None:
            self.found[kind].append((node, name))

        for (node, name), at in self.first.items():
            if name not in self.sends:
                add("unjudged" if name[0] in missing else "unsent", node, name)
                continue
            if node not in self.addressed(name):
                add("misdelivered", node, name)
            if self.causes("order", node, name):
                add("order", node, name)
            if self.causes("gap", node, name):
                add("excused_gap" if at > self.crash.get(node, at) else "gap", node, name)
        for name in self.sends:
            for node in self.addressed(name):
                if (node, name) in self.first:
                    continue
                end = len(self.logs.get(node, []))
                kind = (
                    "excused" if node in self.crash else "unjudged" if node in missing else "loss"
                )
                if kind == "loss" and (self.was_away(node, end) or not self.owed(name, node, end)):
                    kind = "left"
                add("orphaned" if kind == "loss" and name[0] in self.crash else kind, node, name)

    def relays(self, causes: set[Name], effect: Name) -> int:
        """The least number of steps from one of the causes to the effect."""
        steps = nx.DiGraph([(y, x) for x, y in self.before if self.at_hand(x, y)])
        lengths = nx.single_source_shortest_path_length(steps, effect)
        return min(lengths[x] for x in causes)

    def at_hand(self, x: Name, y: Name) -> bool:
        """Whether the sender of y had sent or delivered x before."""
        node, sent_at = self.sends[y]
        mine = [(node, at) for at in range(sent_at)]
        return any(
            spot == self.sends[x] or self.edges.has_edge(self.sends[x], spot) for spot in mine
        )


def by_brute_force(execution: Execution) -> Found:
    return {kind: sorted(where) for kind, where in Brute(execution).found.items() if where}


def invent(seed: int, nodes: int, size: int, lies: bool) -> Execution:
    """What may happen when nothing keeps order; with lies, also what cannot happen."""
    rng = random.Random(seed)
    logs: Logs = {n: [] for n in range(nodes)}
    sent: list[Name] = []
    width = rng.choice([0.15, 0.5, 0.8])  # few destinations make long ways, many make short ones
    for _ in range(size):
        at, action = rng.randrange(nodes), rng.random()
        log = logs[at]
        if action < 0.25 or not sent:
            own = not lies or rng.random() < 0.95
            source = at if own else rng.randrange(nodes)
            sent.append((source, rng.randrange(40) if lies else 3 * len(sent) + 5))
            some = [n for n in range(nodes) if rng.random() < width]
            log.append(send(*sent[-1], rng.choice([None, some, some])))
        elif action < 0.97:
            recent = -1 - int(len(sent) * rng.random() ** 2)
            log.append(deliver(*sent[recent]))
        elif action < 0.985:
            log.append(rng.choice([CRASH, LEAVE, JOIN, JOIN, hold(0, 1)]))
        elif lies:
            log.append(deliver(rng.randrange(nodes + 1), rng.randrange(40)))
    if lies and rng.random() < 0.4:
        logs[rng.randrange(nodes)].reverse()
    if lies and rng.random() < 0.2:
        del logs[rng.randrange(nodes)]
    return Execution(nodes, logs)


def executions(lies: bool = False) -> st.SearchStrategy[Execution]:
    seed, nodes, size = st.integers(0, 2**32), st.integers(1, 6), st.integers(0, 60)
    return st.builds(invent, seed, nodes, size, st.just(lies))


def sample(count: int, lies: bool = False) -> Iterable[Execution]:
    return (invent(seed, 2 + seed % 4, 10 + seed % 40, lies) for seed in range(count))
