"""Every delay explained: what each delivery's delay consists of, to the nanosecond.

A message reaches a process over the links of one copy. The sender of that copy is the message's source,
or a relay that the message had reached in the same way before. So a delay is a chain of hops, back from
the arrival by which the process got the message to the multicast:

- on each link a packet waits (``queueing``), is transmitted (``serialisation``) and travels
  (``propagation``); what it took beyond the link as configured is ``deviation``;
- at each process on the way time passes before a copy is first handed to the network (``relaying``)
  and, if that copy was lost, until one is that arrives (``retransmission``);
- at its end time passes between the arrival of the last packet and the moment at which the protocol
  has the message (``reception``: with a reliable channel the wait for what was sent before), while the
  protocol does not call it held back (``waiting``), and then until delivery (``held``). Where a host
  takes no time and has no channel, all that is not held back waits in the protocol.

A message has arrived when all fragments of one copy have. Of several copies that one counts which came
just when the protocol held the message back or delivered it, else the first: one may be refused, as of
another view, reach a process that is down, or lack a fragment that was lost where nothing is recorded.
A datagram that carries several messages is a copy of each. Time is ``unattributed`` where no packet is
known that carried a message: packets were not recorded.

Each hop points to the one before it, which is on another link or of another copy. Only hops that
deliveries lead back to matter: with flooding that is one in five. Adding up the parts along all their
chains at once takes as many rounds as the longest chain has binary digits.

Hops are sorted once, by message, sender, receiver, copy, fragment and head. Then what belongs together
is side by side, and where a packet was before is found by bisection.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testbed.digest.arrays import Flags, Integers, integers, numbered, order_of, runs_of
from testbed.digest.schemas import SCHEMAS
from testbed.digest.steps import MESSAGE, Facts, Piece, Tables, with_message

NS = 1_000_000_000
ROUNDS = 32  # more than the binary digits of any chain's length
SEVERAL = -1  # the receiver of a packet that is for several
AT_ONCE = 1_000  # nanoseconds: where time is exact, a host has what arrives within these
NONE = -1  # no hop: the index of one more value at the end of columns that are looked up

DELIVERIES = ("node", *MESSAGE, "at", "delay", "held_at")
HOPS = (
    *("tail", "head", "queued", "started", "arrived", "bytes"),
    *("sender", "receiver", "copy", "fragment", *MESSAGE),
)

_PACKET = ("message", "sender", "receiver", "copy", "fragment")  # what tells packets apart

Links = Mapping[tuple[int, int], tuple[int, int]]  # delay_ns and bandwidth_bps by (tail, head)


class Hops(NamedTuple):
    """The hops of some messages, column by column."""

    tail: Integers
    head: Integers
    queued: Integers
    started: Integers
    arrived: Integers
    bytes: Integers
    sender: Integers
    receiver: Integers
    copy: Integers
    fragment: Integers
    message: Integers  # its number
    sent_at: Integers  # when it was multicast
    own: Flags  # whether its source sent this packet
    whole: Integers  # the number of its copy, all fragments of it
    packet: Integers  # the number of this fragment of it

    @property
    def first(self) -> Flags:
        """Whether this is the first link on a packet's way."""
        return np.equal(self.tail, self.sender)


class Arrivals(NamedTuple):
    """The hop that completed the copy by which each process got each message."""

    keys: Integers  # sorted
    hops: Integers

    def of(self, messages: Integers, processes: Integers) -> Integers:
        """These hops, or ``NONE``."""
        keys = messages << 32 | processes
        place = np.searchsorted(self.keys, keys)
        found = np.append(self.keys, -1)[place] == keys
        return np.where(found, np.append(self.hops, NONE)[place], NONE)


def delay_step(facts: Facts, bucket: int, tables: Tables) -> Iterator[Piece]:
    """Write what the delays of some messages consist of."""
    if "deliveries" in tables:
        hops = tables.get("hops", SCHEMAS["hops"].empty_table())
        found = explain(hops, tables["deliveries"], facts.links, facts.prompt)
        facts.write("delays", bucket, found)
    yield from ()


def explain(hops: pa.Table, deliveries: pa.Table, links: Links, prompt: bool = True) -> pa.Table:
    """A row for each delivery of a message whose multicast is in the logs.

    If processes are ``prompt``, their protocols have what arrives at once.
    """
    deliveries = deliveries.filter(pc.is_valid(deliveries["delay"]))
    at, delay, node, source = (
        integers(deliveries, name) for name in ("at", "delay", "node", "source")
    )
    sent, own = at - delay, node == source
    came = np.asarray(pc.coalesce(deliveries["held_at"], deliveries["at"]).to_numpy(), np.int64)
    message, every = prepared(hops, deliveries, sent)
    arrivals = the_arrivals(every, message << 32 | node, came)
    last = np.where(own, NONE, arrivals.of(message, node))
    its, before, last, tried = on_the_way(every, arrivals, last)
    parts, begun = added_up(own_parts(its, before, tried, links), before, known_since(its, before))
    arrived, begun = np.append(its.arrived, 0), np.append(begun, 0)
    last[(arrived[last] > came) | (begun[last] < sent)] = NONE
    lost = (last == NONE) & ~own  # nothing is known of how it came
    none = last == NONE
    here = came - np.where(lost, came, np.where(own, sent, arrived[last]))
    waits = own | (prompt & (here > AT_ONCE))
    return pa.table(
        {
            **{name: deliveries[name] for name in ("node", *MESSAGE)},
            "delay": delay,
            **{name: np.append(part, 0)[last] for name, part in parts.items()},
            "reception": np.where(waits, 0, here),
            "waiting": np.where(waits, here, 0),
            "held": at - came,
            "unattributed": np.where(lost, came, np.where(own, sent, begun[last])) - sent,
            "via": pa.array(np.append(its.sender, 0)[last], mask=none),
            "copy": pa.array(np.append(its.copy, 0)[last], mask=none),
        }
    )


def prepared(hops: pa.Table, deliveries: pa.Table, sent: Integers) -> tuple[Integers, Hops]:
    """The number of each delivery's message, and the hops of these messages."""
    hops = with_message(hops)
    several = pc.fill_null(hops["receiver"], SEVERAL)
    hops = hops.select(HOPS).set_column(HOPS.index("receiver"), "receiver", several)
    both = (deliveries, hops)
    numbers = ids(*(np.concatenate([integers(each, name) for each in both]) for name in MESSAGE))
    ours, theirs = np.split(numbers, [len(deliveries)])
    sent_at = np.full(len(numbers), NONE)
    sent_at[ours] = sent
    known = np.flatnonzero(sent_at[theirs] != NONE)
    columns: dict[str, Any] = {name: integers(hops, name)[known] for name in HOPS}
    own = columns.pop("source") == columns["sender"]
    del columns["seq"]
    columns |= {"message": theirs[known], "sent_at": sent_at[theirs[known]], "own": own}
    order = order_of(*(columns[name] for name in (*_PACKET, "head", "arrived")))
    columns = {name: column[order] for name, column in columns.items()}
    whole, packet = (
        numbered(*(columns[name] for name in names)) for names in (_PACKET[:-1], _PACKET)
    )
    return ours, Hops(**columns, whole=whole, packet=packet)


def the_arrivals(hops: Hops, names: Integers, came: Integers) -> Arrivals:
    """When all fragments of a copy are there; of several, the one that the protocol took, or the first.

    It took that which came just before, as ``names`` of messages and processes say, it had the message.
    """
    fragments = np.bincount(hops.whole[runs_of(hops.packet)[:-1]], minlength=1)
    here = np.flatnonzero((hops.receiver == SEVERAL) | (hops.receiver == hops.head))
    here = here[runs_of(hops.packet[here], hops.head[here])[:-1]]  # a duplicate says nothing new
    if fragments.max() > 1:
        here = here[order_of(hops.head[here], hops.whole[here], hops.arrived[here])]
        bounds = runs_of(hops.head[here], hops.whole[here])
        here = here[bounds[1:] - 1]
        here = here[np.diff(bounds) == fragments[hops.whole[here]]]
    keys = hops.message[here] << 32 | hops.head[here]
    order = order_of(keys, hops.arrived[here], hops.queued[here])
    keys, here = keys[order], here[order]
    first = runs_of(keys)[:-1]
    found = Arrivals(keys[first], here[first])
    gap = moments(names, came, keys) - hops.arrived[here]
    taken = np.flatnonzero((gap >= 0) & (gap <= AT_ONCE))
    bounds = runs_of(keys[taken])
    least = np.minimum.reduceat(gap[taken], bounds[:-1]) if len(taken) else gap[taken]
    taken = taken[gap[taken] == np.repeat(least, np.diff(bounds))][::-1]  # of these, the first
    found.hops[np.searchsorted(found.keys, keys[taken])] = here[taken]
    return found


def moments(names: Integers, came: Integers, keys: Integers) -> Integers:
    """The moments at which the protocol had these, or ``NONE``."""
    order = np.argsort(names, kind="stable")
    place = np.searchsorted(names, keys, sorter=order)
    which = np.append(order, NONE)[place]
    return np.where(np.append(names, NONE)[which] == keys, np.append(came, NONE)[which], NONE)


def on_the_way(
    hops: Hops, arrivals: Arrivals, last: Integers
) -> tuple[Hops, Integers, Integers, Integers]:
    """The hops that these lead back to, the one before each, and these, by their new numbers.

    And when their packets were first handed over.
    """
    count = len(hops.head)
    before, needed = np.full(count, NONE), np.zeros(count, np.bool_)
    rows = np.unique(last[last != NONE])
    while len(rows):
        needed[rows] = True
        before[rows] = _before(hops, arrivals, rows)
        rows = np.unique(before[rows])
        rows = rows[(rows != NONE) & ~needed[rows]]
    number = np.append(np.cumsum(needed) - 1, NONE)
    rows = np.flatnonzero(needed)
    columns: Iterable[Any] = (column[rows] for column in hops)
    its = Hops(*columns)
    return its, number[before[rows]], number[last], first_attempts(hops)[rows]


def _before(hops: Hops, arrivals: Arrivals, rows: Integers) -> Integers:
    """The hop before each of these: of its packet, or that by which its sender had got the message."""
    found = _previous(hops, rows)
    first = rows[hops.first[rows]]
    relayed = arrivals.of(hops.message[first], hops.sender[first])
    late = np.append(hops.arrived, 0)[relayed] > hops.queued[first]
    relayed[late | hops.own[first]] = NONE
    found[hops.first[rows]] = relayed
    return found


def _previous(hops: Hops, rows: Integers) -> Integers:
    """The latest arrival of a packet at the node that it then left."""
    arrivals = np.append(hops.packet << 32 | hops.head, NONE)
    wanted = hops.packet[rows] << 32 | hops.tail[rows]
    place = np.searchsorted(arrivals[:-1], wanted, "right") - 1
    while (late := (arrivals[place] == wanted) & (hops.arrived[place] > hops.queued[rows])).any():
        place -= late  # it came once more, later
    return np.where(arrivals[place] == wanted, place, NONE)


def known_since(hops: Hops, before: Integers) -> Integers:
    """Since when it is known where the packet of each hop was: the end of the hop before, if any."""
    since = np.where(hops.own & hops.first, hops.sent_at, hops.queued)
    return np.where(before == NONE, since, np.append(hops.arrived, 0)[before])


def own_parts(
    hops: Hops, before: Integers, attempted: Integers, links: Links
) -> dict[str, Integers]:
    """What the time of each hop consists of, since the end of the one before."""
    ends, which = np.unique(hops.tail << 32 | hops.head, return_inverse=True)
    configured = [links[end >> 32, end & 0xFFFFFFFF] for end in ends.tolist()]
    delay, bandwidth = np.array(configured, np.int64).reshape(-1, 2)[which].T
    serialisation = hops.bytes * 8 * NS // bandwidth
    since = known_since(hops, before)
    tried = np.where(hops.first, np.maximum(attempted, since), since)
    between = hops.queued - tried
    return {
        "propagation": delay,
        "serialisation": serialisation,
        "queueing": hops.started - hops.queued,
        "deviation": hops.arrived
        - hops.started
        - serialisation
        - delay
        + np.where(hops.first, 0, between),
        "retransmission": np.where(hops.first, between, 0),
        "relaying": tried - since,
        "hops": np.ones_like(delay),
        "relays": (hops.first & (before != NONE)).astype(np.int64),
    }


def first_attempts(hops: Hops) -> Integers:
    """When the sender of each packet first handed over what it holds, to this receiver or to all."""
    number = ids if hops.fragment.any() else numbered  # they are sorted but for fragments
    one = number(hops.message, hops.sender, hops.fragment)
    whom = number(hops.message, hops.sender, hops.receiver, hops.fragment)
    many = hops.receiver == SEVERAL
    attempts = []
    for key, counted in ((whom, hops.first), (one, hops.first & many)):
        earliest = np.full(len(key) + 1, np.iinfo(np.int64).max)
        np.minimum.at(earliest, key[counted], hops.queued[counted])
        attempts.append(earliest[key])
    found: Integers = np.minimum(*attempts)
    return found


def added_up(
    parts: dict[str, Integers], before: Integers, since: Integers
) -> tuple[dict[str, Integers], Integers]:
    """The parts of each hop and all before it, and since when that is known; a circle has no time."""
    sums, since, before = np.stack(list(parts.values())), since.copy(), before.copy()
    for _ in range(ROUNDS):
        on = np.flatnonzero(before != NONE)
        if not len(on):
            break
        ahead = before[on]
        sums[:, on] += sums[:, ahead]
        since[on], before[on] = since[ahead], before[ahead]
    since[before != NONE] = NONE
    return dict(zip(parts, sums, strict=True)), since


def ids(*keys: Integers) -> Integers:
    """A number from 0 for each combination of keys, in their order."""
    order = order_of(*keys)
    found = np.empty_like(keys[0])
    found[order] = numbered(*(key[order] for key in keys))
    return found
