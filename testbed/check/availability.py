"""Availability: who wanted a ticket and had none, for how long, and whether the paper promised better.

A node wants a ticket from the time it owns one or joins until it leaves or crashes; one that owned a
ticket in its first epoch wants it again when it is restarted. Gidenstam et al. 2011, section 4.2,
promise that a coordinator stays one as long as at most k of its 2k+1 closest predecessors fail.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from testbed.check.tickets import Claim, Records
from testbed.protocols import NS_PER_MS

Wishes = Mapping[
    int, Sequence[tuple[int, str]]
]  # by node: when it joined, left, crashed, restarted


class Span(NamedTuple):
    """A time in which a node owned a ticket; without a ``ticket``, wanted one in vain."""

    start: int
    end: int
    node: int
    ticket: int | None = None


class Availability(NamedTuple):
    """When nobody owned a ticket for longest, all vain wishes, and what the paper says about it."""

    nobody: Span | None
    waits: tuple[Span, ...]
    sentences: tuple[str, ...]

    def figures(self) -> dict[str, float]:
        """The longest times, in milliseconds."""
        longest = max((wait.end - wait.start for wait in self.waits), default=0)
        nobody = 0 if self.nobody is None else self.nobody.end - self.nobody.start
        return {"ticket_wait_ms_max": longest / NS_PER_MS, "no_owner_ms_max": nobody / NS_PER_MS}


def find_waits(records: Records, wishes: Wishes, end: int, k: int) -> Availability:
    """Who could not send for how long, up to the end of a run; ``k`` is 0 if nothing is promised."""
    nodes = sorted({*records, *wishes})
    spans = [span for node in nodes for span in _spans(node, records, wishes, end)]
    owned = sorted(span for span in spans if span.ticket is not None)
    waits = tuple(sorted(span for span in spans if span.ticket is None))
    gaps = [(a, b) for a, b in _gaps(owned, end) if any(w.start < b and w.end > a for w in waits)]
    told_apart = (*_longest(waits, owned, wishes, end, k), *_unserved(waits, end))
    if not gaps:
        return Availability(None, waits, told_apart)
    start, stop = max(gaps, key=lambda gap: gap[1] - gap[0])
    idle = sorted({w.node for w in waits if w.start < stop and w.end > start})
    when = "to the end" if stop == end else f"to {stop / NS_PER_MS:,.0f} ms"
    told = (
        f"from {start / NS_PER_MS:,.0f} ms {when} nobody owned a ticket: {_nodes(idle)} could not "
        f"send for {(stop - start) / NS_PER_MS:,.0f} ms"
    )
    told += f"; {_promised(owned, wishes, start, stop, k)}" if k else ""
    return Availability(Span(start, stop, idle[0]), waits, (told, *told_apart))


def _spans(node: int, records: Records, wishes: Wishes, end: int) -> Iterator[Span]:
    """When a node owned a ticket, and when it wanted one in vain."""
    moments: list[tuple[int, Claim | str]] = [*wishes.get(node, ())]
    moments += [(line.t, line) for line in records.get(node, ()) if isinstance(line, Claim)]
    moments.sort(key=lambda moment: moment[0])
    owns: Claim | None = None
    since: int | None = None  # it has waited
    wants = founder = False
    for t, what in (*moments, (end, "end")):
        stays = what in ("join", "leave")
        if owns is not None and (not stays or owns.until < t):
            stop = min(owns.until, t)
            yield Span(owns.t, stop, node, owns.owns)
            owns, since = None, stop if wants else None
        if isinstance(what, Claim) and what.owns is not None:
            owns, wants, founder = what, True, founder or what.epoch == 0
        wants = wants or what == "join" or (what == "restart" and founder)
        over = owns is not None or what in ("leave", "crash", "end")
        if since is not None and (over or not wants):
            if wants and since < t:
                yield Span(since, t, node)
            since = None
        wants = wants and what not in ("leave", "crash")
        if wants and owns is None and since is None:
            since = t


def _gaps(owned: Iterable[Span], end: int) -> Iterator[tuple[int, int]]:
    """When nobody owned a ticket, after somebody has."""
    until: int | None = None
    for span in owned:
        if until is not None and span.start > until:
            yield until, span.start
        until = max(until or 0, span.end)
    if until is not None and until < end:
        yield until, end


def _longest(
    waits: Sequence[Span], owned: Sequence[Span], wishes: Wishes, end: int, k: int
) -> Iterator[str]:
    """Who waited longest of those that got a ticket in the end, and why, if it had one before."""
    served = [wait for wait in waits if wait.end < end]
    if not served:
        return
    start, stop, node, _ = max(served, key=lambda wait: wait.end - wait.start)
    asked = dict(wishes.get(node, ())).get(start)
    why = f"after its {asked}" if asked else "having lost its ticket"
    told = (
        f"node {node} waited longest of those that got a ticket: it could not send for "
        f"{(stop - start) / NS_PER_MS:,.0f} ms from {start / NS_PER_MS:,.0f} ms on, {why}"
    )
    yield told + (f"; {_promised(owned, wishes, start, stop, k)}" if k and not asked else "")


def _unserved(waits: Iterable[Span], end: int) -> Iterator[str]:
    """Who still waited at the end."""
    for wait in waits:
        if wait.end == end:
            since = f"{wait.start / NS_PER_MS:,.0f} ms"
            yield f"node {wait.node} wanted a ticket from {since} to the end, and had none"


def _promised(owned: Sequence[Span], wishes: Wishes, start: int, stop: int, k: int) -> str:
    """Whether somebody should have gone on, by the crashes and leaves that the logs tell of."""
    lease = max(span.end - span.start for span in owned)
    ring = {span.ticket: span.node for span in owned if start - 2 * lease < span.end}
    members = [ring[ticket] for ticket in sorted(ring, key=lambda t: -1 if t is None else t)]
    failed = {
        node
        for node in members
        for t, what in wishes.get(node, ())
        if what in ("crash", "leave") and start - 3 * lease < t < stop
    }
    told = f"of {len(members)} coordinators {len(failed)} had crashed or left"
    if len(members) < 2 * k + 2:
        return f"{told}, and with fewer than 2k+2 = {2 * k + 2} the paper promises nothing"
    around = [*members, *members[: 2 * k + 1]]  # the predecessors of a member follow it
    kept = [
        node
        for i, node in enumerate(members)
        if node not in failed and len(failed & {*around[i + 1 : i + 2 * k + 2]}) <= k
    ]
    if kept:
        return f"{told}: the paper promised that {_nodes(kept)} go on, unless links failed"
    return f"{told}, more than k = {k} of 2k+1 neighbours: the paper promises nothing"


def _nodes(nodes: Sequence[int]) -> str:
    return f"node{'s' * (len(nodes) > 1)} {', '.join(map(str, nodes))}"
