"""Tickets: had each one owner at a time, and was no event's name used twice?

A node's ``tickets`` line holds until its next one, until the lease in it expires, or until the node
crashes. So each ticket has spans in which a node owned it, or could assign it, by the clock of the
run, which all nodes share; no two spans of different nodes may overlap. A node that stamps an event
must own the ticket at that moment. No stamp is used for two events, and none of an epoch is made once
there is one of a later epoch. In a damaged log a line holds at its own instant only, since the next
line may be lost.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

CONFLICTS = {
    "co_owned": "ticket owned by two nodes at once",
    "co_assigned": "ticket that one node could assign while another owned it or could too",
    "unowned": "event made with a ticket that its node did not own",
    "restamped": "event made with a ticket and number that another event has",
    "outdated": "event made in an older epoch of its ticket than one before",
}
FOREVER = 1 << 63


class Claim(NamedTuple):
    """From ``t`` on a node owns a ticket, or none, and may assign others once it is ``since``."""

    t: int
    owns: int | None = None
    epoch: int = 0
    until: int = FOREVER
    assigns: tuple[int, ...] = ()
    since: int = 0
    cluster: int | None = None  # None: of all, if there are several


class Stamp(NamedTuple):
    """A node makes an event with a ticket."""

    t: int
    node: int
    name: tuple[int, int]
    ticket: int
    epoch: int
    number: int
    cluster: int | None = None

    def __str__(self) -> str:
        return f"m({self.name[0]},{self.name[1]}) of node {self.node} at {_ms(self.t)}"


class Conflict(NamedTuple):
    """Something that must never happen to a ticket, since when, and at which nodes."""

    kind: str
    t: int
    ticket: int
    nodes: tuple[int, ...]
    sentence: str


class Span(NamedTuple):
    """A time in which a node owned a ticket, or could assign it."""

    start: int
    end: int
    node: int
    owned: bool


Records = Mapping[int, Sequence[Claim | Stamp]]  # of each node, in its own order


def read_claim(line: Mapping[str, Any]) -> Claim:
    """What a ``tickets`` line says."""
    t, cluster = integer(line["t"]), line.get("cluster")
    if line["owns"] is None:
        return Claim(t, cluster=cluster)
    until = FOREVER if line["until"] is None else integer(line["until"])
    assigns = tuple(map(integer, line["assigns"]))
    since = integer(line["from"])
    owns, epoch = integer(line["owns"]), integer(line["epoch"])
    return Claim(t, owns, epoch, until, assigns, since, cluster)


def read_stamp(node: int, line: Mapping[str, Any]) -> Stamp:
    """What a ``stamp`` line says."""
    t, *name = (integer(line[key]) for key in ("t", "source", "seq"))
    ticket, epoch, number = (integer(line[key]) for key in ("ticket", "epoch", "number"))
    return Stamp(t, node, (name[0], name[1]), ticket, epoch, number, line.get("cluster"))


def find_conflicts(records: Records, doubtful: Collection[int] = ()) -> tuple[Conflict, ...]:
    """All conflicts, in the order of time."""
    spans: dict[int, list[Span]] = defaultdict(list)
    stamps: list[Stamp] = []
    found: list[Conflict] = []
    for node, lines in records.items():
        claims = [line for line in lines if isinstance(line, Claim)]
        for ticket, some in _spans(node, claims, node in doubtful):
            spans[ticket] += some
        stamps += (line for line in lines if isinstance(line, Stamp))
        if node not in doubtful:
            found += _unowned(lines)
    for ticket, some in spans.items():
        found += _overlaps(ticket, some)
    stamps.sort(key=lambda stamp: (stamp.t, stamp.epoch))
    found += (*_restamped(stamps), *_outdated(stamps))
    return tuple(sorted(found, key=lambda conflict: conflict[1:]))


def tickets_in(records: Records) -> int:
    """The number of tickets that were owned or used."""
    lines = [line for some in records.values() for line in some]
    return len({line.owns if isinstance(line, Claim) else line.ticket for line in lines} - {None})


def _spans(node: int, claims: Sequence[Claim], doubtful: bool) -> Iterator[tuple[int, list[Span]]]:
    """By ticket, when a node owned or could assign it; claims that adjoin are one span."""
    spans: dict[tuple[int, bool], list[Span]] = defaultdict(list)
    for claim, later in pairwise((*claims, Claim(FOREVER))):
        if claim.owns is None:
            continue
        end = min(claim.until, claim.t + 1 if doubtful else later.t)
        _extend(spans[claim.owns, True], Span(claim.t, end, node, owned=True))
        for ticket in claim.assigns:
            span = Span(max(claim.t, claim.since), end, node, owned=False)
            _extend(spans[ticket, False], span)
    for (ticket, _), some in spans.items():
        yield ticket, some


def _extend(spans: list[Span], span: Span) -> None:
    if span.start < span.end:
        if spans and spans[-1].end == span.start:
            span = span._replace(start=spans.pop().start)
        spans.append(span)


def _overlaps(ticket: int, spans: Iterable[Span]) -> Iterator[Conflict]:
    """Every pair of spans of different nodes that overlap."""
    open_: list[Span] = []
    for span in sorted(spans):
        open_ = [before for before in open_ if before.end > span.start]
        for before in open_:
            if before.node != span.node:
                yield _overlap(ticket, before, span)
        open_.append(span)


def _overlap(ticket: int, before: Span, after: Span) -> Conflict:
    start, end = after.start, min(before.end, after.end)
    when = f"from {_ms(start)} " + ("on" if end == FOREVER else f"to {_ms(end)}")
    one, other = before.node, after.node
    nodes = (one, other)
    if before.owned and after.owned:
        sentence = f"nodes {one} and {other} both owned ticket {ticket} {when}"
        return Conflict("co_owned", start, ticket, nodes, sentence)
    if before.owned or after.owned:
        owner, assigner = nodes if before.owned else nodes[::-1]
        sentence = f"node {assigner} could assign ticket {ticket}, which node {owner} owned, {when}"
    else:
        sentence = f"nodes {one} and {other} could both assign ticket {ticket} {when}"
    return Conflict("co_assigned", start, ticket, nodes, sentence)


def _unowned(lines: Iterable[Claim | Stamp]) -> Iterator[Conflict]:
    """The stamps of one node that its claims do not cover."""
    claim = Claim(0)
    for line in lines:
        if isinstance(line, Claim):
            claim = line
        elif (line.ticket, line.epoch) != (claim.owns, claim.epoch) or line.t >= claim.until:
            with_ = f"ticket {line.ticket} in epoch {line.epoch}"
            owned = f"its node owned {_owned(claim, line.t)} then"
            yield _conflict("unowned", line, f"{line} was made with {with_}, but {owned}")


def _owned(claim: Claim, t: int) -> str:
    if claim.owns is None:
        return "none"
    lapsed = f" until {_ms(claim.until)}, and none" if t >= claim.until else ""
    return f"ticket {claim.owns} in epoch {claim.epoch}{lapsed}"


def _restamped(stamps: Iterable[Stamp]) -> Iterator[Conflict]:
    """Events with a stamp that an earlier event has."""
    first: dict[tuple[int, int, int], Stamp] = {}
    for stamp in stamps:
        before = first.setdefault((stamp.ticket, stamp.epoch, stamp.number), stamp)
        if before.name != stamp.name:
            what = f"number {stamp.number} of ticket {stamp.ticket} in epoch {stamp.epoch}"
            yield _conflict("restamped", stamp, f"{stamp} was made with {what}, as was {before}")


def _outdated(stamps: Iterable[Stamp]) -> Iterator[Conflict]:
    """Events of an older epoch than an earlier event; at one instant the older epoch comes first."""
    newest: dict[int, Stamp] = {}
    for stamp in stamps:
        before = newest.setdefault(stamp.ticket, stamp)
        if before.epoch > stamp.epoch:
            what = f"in epoch {stamp.epoch} of ticket {stamp.ticket}"
            later = f"after {before} in epoch {before.epoch}"
            yield _conflict("outdated", stamp, f"{stamp} was made {what}, {later}")
        else:
            newest[stamp.ticket] = stamp


def _conflict(kind: str, stamp: Stamp, sentence: str) -> Conflict:
    return Conflict(kind, stamp.t, stamp.ticket, (stamp.node,), sentence)


def _ms(t: int) -> str:
    return f"{t / 1e6:.3f} ms"


def integer(value: object) -> int:
    """An integer of a line."""
    if type(value) is not int:  # True == 1 and 1.0 == 1 must not pass
        raise TypeError(f"an integer is wanted, not {value!r}")
    return value
