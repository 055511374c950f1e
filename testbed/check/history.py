"""Happens-before, rebuilt from the logs.

Messages get *slots*: those of one sender side by side in the order of sending, after an empty slot
that stands for "none yet". Of a sender's messages, those that happened before m are always the
first few; so one slot for each sender, the last that happened before m or is m, is m's causal past.
That row is the maximum over what the sender of m delivered since its previous send, and that
previous send. Rows are made from a work-list: a delivery counts once its send has a row.
If some never get one, the logs contradict themselves: a delivery happened before its own send.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from testbed.check.logs import Logs, Name

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]


class Track(NamedTuple):
    """One process's log in slots: slot is a delivery, ~slot a send."""

    events: Ints
    times: NDArray[np.int64]
    crash: int | None  # from here on gaps are excused


class Links(NamedTuple):
    """Deliveries that precede a send at their node: message ``cause`` was delivered, at position
    ``at`` of the log, before ``effect`` was sent there and after the send before that."""

    cause: Ints
    effect: Ints
    at: Ints

    def where(self, mask: Bools) -> Links:
        """The links that a mask selects."""
        return Links(self.cause[mask], self.effect[mask], self.at[mask])


@dataclass(frozen=True)
class History:
    """Messages by slot, and what happened before each. Slots from ``slots`` on were never sent."""

    logs: Logs
    tracks: dict[int, Track]
    senders: tuple[int, ...]
    names: list[Name]
    slot_of: Ints  # of each numbered message
    slots: int
    sender: Ints  # of each slot: index into senders
    sent_at: Ints  # of each slot: position in its sender's log
    past: Ints  # slots × senders: the last slot of each sender that happened before, or is this
    impossible: Links  # deliveries that happened before their own send
    to_all: Bools
    to_some: dict[int, Ints]

    @property
    def messages(self) -> int:
        """The number of messages sent."""
        return self.slots - len(self.senders)

    @cached_property
    def home(self) -> NDArray[np.int64]:
        """For each slot the node of its sender."""
        return np.array([self.logs.node(sender) for sender in self.senders], np.int64)[self.sender]

    def since(self, process: int, position: int = 0) -> Bools:
        """Which slots are, or happened after, the first message of a process from a position on."""
        if process not in self.senders:
            return np.zeros(self.slots, np.bool_)
        index = self.senders.index(process)
        start, end = np.searchsorted(self.sender, [index, index + 1])
        before = np.searchsorted(self.sent_at[start + 1 : end], position)
        known: Bools = self.past[:, index] > start + before
        return known

    def addressed_to(self, node: int) -> Bools:
        """Which slots hold a message that the node, or a process of it, should deliver."""
        node = self.logs.node(node)
        mask = self.to_all.copy()
        if node in self.to_some:
            mask[self.to_some[node]] = True
        return mask


def rebuild(logs: Logs) -> History:
    """Rebuild happens-before from logs."""
    sends = {node: ~events[events < 0] for node, events in _columns(logs)}
    senders = tuple(node for node, sent in sends.items() if sent.size)
    slot_of, names, sender = _assign_slots(logs, [sends[node] for node in senders])
    tracks = {
        node: Track(
            np.where(events < 0, ~slot_of[~events], slot_of[events]),
            np.frombuffer(logs.of[node].times, np.int64),
            0 if logs.of[node].restarted else logs.of[node].crash,
        )
        for node, events in _columns(logs)
    }
    links, sent_at = _links(tracks, senders, len(sender))
    past, impossible = _past(links, sender, len(senders))
    to_all, to_some = _destinations(logs, slot_of, len(sender))
    return History(
        logs=logs,
        tracks=tracks,
        senders=senders,
        names=names,
        slot_of=slot_of,
        slots=len(sender),
        sender=sender,
        sent_at=sent_at,
        past=past,
        impossible=impossible,
        to_all=to_all,
        to_some=to_some,
    )


def _columns(logs: Logs) -> list[tuple[int, Ints]]:
    processes = (process for process in (*logs.nodes, *logs.home) if process in logs.of)
    return [(process, np.frombuffer(logs.of[process].events, np.int32)) for process in processes]


def _assign_slots(logs: Logs, sends: list[Ints]) -> tuple[Ints, list[Name], Ints]:
    """The slot of each numbered message; the name and the sender of each slot."""
    slot_of = np.full(len(logs.numbers), -1, np.int32)
    names: list[Name] = []
    by_number = list(logs.numbers)
    sizes = [len(sent) + 1 for sent in sends]
    for sent in sends:
        slot_of[sent] = np.arange(len(names) + 1, len(names) + 1 + len(sent), dtype=np.int32)
        names.append((-1, -1))
        names.extend(by_number[number] for number in sent.tolist())
    sender = np.repeat(np.arange(len(sends), dtype=np.int32), sizes)
    unsent = np.flatnonzero(slot_of < 0)
    slot_of[unsent] = np.arange(len(names), len(names) + len(unsent), dtype=np.int32)
    names.extend(by_number[number] for number in unsent.tolist())
    return slot_of, names, sender


def _destinations(logs: Logs, slot_of: Ints, slots: int) -> tuple[Bools, dict[int, Ints]]:
    to_all = np.zeros(slots, np.bool_)
    to_some: dict[int, list[int]] = defaultdict(list)
    for number, to in logs.to.items():
        slot = int(slot_of[number])
        if to is None:
            to_all[slot] = True
        else:
            for node in to:
                to_some[node].append(slot)
    return to_all, {node: np.array(listed, np.int32) for node, listed in to_some.items()}


def _links(tracks: dict[int, Track], senders: tuple[int, ...], slots: int) -> tuple[Links, Ints]:
    """All links in the order of their effects, and where each slot was sent."""
    sent_at = np.full(slots, -1, np.int32)
    parts = []
    for node in senders:
        events = tracks[node].events
        sends = np.flatnonzero(events < 0).astype(np.int32)
        sent_at[~events[sends]] = sends
        at = np.flatnonzero((events >= 0) & (events < slots)).astype(np.int32)
        at = at[at < sends[-1]]
        parts.append(Links(events[at], ~events[sends[np.searchsorted(sends, at)]], at))
    columns = [np.concatenate(c) for c in zip(*parts, strict=True)] or [np.zeros(0, np.int32)] * 3
    return Links(*columns), sent_at


def _past(links: Links, sender: Ints, senders: int) -> tuple[Ints, Links]:
    """The causal past of each slot, and the links left out because they would precede themselves."""
    rows, done = _rows(links, sender, senders)
    impossible = np.zeros(len(links.cause), np.bool_)
    if not done.all():
        knot = _knots(links, sender, done)
        impossible = knot[links.cause] == knot[links.effect]
        rows, done = _rows(links.where(~impossible), sender, senders)
    return rows, links.where(impossible)


def _rows(links: Links, sender: Ints, senders: int) -> tuple[Ints, Bools]:
    """For each slot, the last slot of each sender up to and with itself; which could be made."""
    slots = len(sender)
    none_yet = np.searchsorted(sender, np.arange(senders)).astype(np.int32)
    rows = np.empty((slots, senders), np.int32)
    rows[none_yet] = none_yet
    done = np.zeros(slots + 1, np.bool_)
    done[none_yet] = True
    starts = np.searchsorted(links.effect, np.arange(slots + 1)).tolist()
    columns = sender.tolist()
    ends = {*none_yet.tolist(), slots}
    waiting: dict[int, list[int]] = defaultdict(list)
    ready = [slot + 1 for slot in none_yet.tolist()]
    while ready:
        slot = ready.pop()
        while slot not in ends:
            causes = links.cause[starts[slot] : starts[slot + 1]]
            known = done[causes]
            if not known.all():
                waiting[int(causes[~known][-1])].append(slot)  # most likely the last to come
                break
            rows[slot] = rows[slot - 1]
            if len(causes):
                np.maximum(rows[slot], rows[causes].max(axis=0), out=rows[slot])
            rows[slot, columns[slot]] = slot
            done[slot] = True
            ready.extend(waiting.pop(slot, ()))
            slot += 1
    return rows, done[:slots]


def _knots(links: Links, sender: Ints, done: Bools) -> Ints:
    """Number the slots so that those which all happened before one another share a number."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    open_slots = np.flatnonzero(~done)
    graph.add_nodes_from(open_slots.tolist())
    graph.add_edges_from((s - 1, s) for s in open_slots.tolist() if not done[s - 1])
    loose = ~done[links.cause] & ~done[links.effect]
    graph.add_edges_from(
        zip(links.cause[loose].tolist(), links.effect[loose].tolist(), strict=True)
    )
    knot = np.arange(len(sender), dtype=np.int32)
    for component in nx.strongly_connected_components(graph):
        knot[list(component)] = min(component)
    return knot
