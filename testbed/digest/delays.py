"""Every delay explained: what each delivery's delay consists of, to the nanosecond.

A message reaches a process over the links of one copy. The sender of that copy is the message's source,
or a relay that the message had reached in the same way before. So a delay is a chain of hops, back from
the arrival by which the process got the message to the multicast:

- on each link a packet waits (``queueing``), is transmitted (``serialisation``) and travels
  (``propagation``); what it took beyond the link as configured is ``deviation``;
- at each process on the way time passes before a copy is first handed to the network (``relaying``)
  and, if that copy was lost, until one is that arrives (``retransmission``);
- at its end time passes between the arrival of the last packet and the moment at which the protocol
  has the message (``reception``: with a reliable channel the wait for what was sent before), and then
  until delivery (``held``).

A message has arrived when all fragments of one copy have; of several copies the first to do so counts.
Time is ``unattributed`` where no packet is known that carried a message: packets were not recorded, or
the protocol puts several messages into one datagram, which names one of them.

Each hop points to the one before it, which is on another link or of another copy. Adding up the parts
along the chains of all hops at once takes as many rounds as the longest chain has binary digits.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testbed.digest.arrays import Flags, Integers, integers, latest, runs_of
from testbed.digest.steps import MESSAGE

NS = 1_000_000_000
ROUNDS = 32  # more than the binary digits of any chain's length
SEVERAL = -1  # the receiver of a packet that is for several
NONE = -1  # no hop: the index of one more value at the end of columns that are looked up
BITS = 62  # of a key made of several

COLUMNS = (
    *("tail", "head", "queued", "started", "arrived", "bytes"),
    *("sender", "receiver", "copy", "fragment", *MESSAGE),
)

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

    @property
    def first(self) -> Flags:
        """Whether this is the first link on a packet's way."""
        return np.equal(self.tail, self.sender)


class Arrivals(NamedTuple):
    """The hop that completed the first whole copy of each message at each process."""

    keys: Integers  # sorted
    hops: Integers

    def of(self, messages: Integers, processes: Integers) -> Integers:
        """These hops, or ``NONE``."""
        keys = messages << 32 | processes
        place = np.searchsorted(self.keys, keys)
        found = np.append(self.keys, -1)[place] == keys
        return np.where(found, np.append(self.hops, NONE)[place], NONE)


def explain(hops: pa.Table, deliveries: pa.Table, links: Links) -> pa.Table:
    """A row for each delivery of a message whose multicast is in the logs."""
    deliveries = deliveries.filter(pc.is_valid(deliveries["delay"]))
    at, delay, node, source = (
        integers(deliveries, name) for name in ("at", "delay", "node", "source")
    )
    sent, own = at - delay, node == source
    came = np.asarray(pc.coalesce(deliveries["held_at"], deliveries["at"]).to_numpy(), np.int64)
    message, its = prepared(hops, deliveries, sent)
    arrivals = first_arrivals(its)
    before = chained(its, arrivals)
    parts, begun = added_up(own_parts(its, before, links), before, known_since(its, before))
    arrived, begun = np.append(its.arrived, 0), np.append(begun, 0)
    last = np.where(own, NONE, arrivals.of(message, node))
    last[(arrived[last] > came) | (begun[last] < sent)] = NONE
    lost = (last == NONE) & ~own  # nothing is known of how it came
    none = last == NONE
    return pa.table(
        {
            **{name: deliveries[name] for name in ("node", *MESSAGE)},
            "delay": delay,
            **{name: np.append(part, 0)[last] for name, part in parts.items()},
            "reception": came - np.where(lost, came, np.where(own, sent, arrived[last])),
            "held": at - came,
            "unattributed": np.where(lost, came, np.where(own, sent, begun[last])) - sent,
            "via": pa.array(np.append(its.sender, 0)[last], mask=none),
            "copy": pa.array(np.append(its.copy, 0)[last], mask=none),
        }
    )


def prepared(hops: pa.Table, deliveries: pa.Table, sent: Integers) -> tuple[Integers, Hops]:
    """The number of each delivery's message, and the hops of these messages."""
    hops = hops.filter(pc.and_(pc.is_valid(hops["source"]), pc.is_valid(hops["seq"])))
    several = pc.fill_null(hops["receiver"], SEVERAL)
    hops = hops.select(COLUMNS).set_column(COLUMNS.index("receiver"), "receiver", several)
    both = (deliveries, hops)
    numbers = ids(*(np.concatenate([integers(each, name) for each in both]) for name in MESSAGE))
    ours, theirs = np.split(numbers, [len(deliveries)])
    sent_at = np.full(len(numbers), NONE)
    sent_at[ours] = sent
    known = np.flatnonzero(sent_at[theirs] != NONE)
    columns = {name: integers(hops, name)[known] for name in COLUMNS}
    own = columns.pop("source") == columns["sender"]
    del columns["seq"]
    theirs = theirs[known]
    return ours, Hops(**columns, message=theirs, sent_at=sent_at[theirs], own=own)


def first_arrivals(hops: Hops) -> Arrivals:
    """When all fragments of a copy are there; of several copies, the first."""
    copy = ids(hops.message, hops.sender, hops.receiver, hops.copy)
    fragment = ids(copy, hops.fragment)
    _, one = np.unique(fragment, return_index=True)
    fragments = np.bincount(copy[one], minlength=1)
    here = np.flatnonzero((hops.receiver == SEVERAL) | (hops.receiver == hops.head))
    order = np.lexsort((hops.arrived[here], fragment[here], hops.head[here]))
    here = here[order]
    here = here[runs_of(hops.head[here], fragment[here])[:-1]]  # a duplicate says nothing new
    here = here[np.lexsort((hops.arrived[here], copy[here], hops.head[here]))]
    bounds = runs_of(hops.head[here], copy[here])
    last = here[bounds[1:] - 1]
    last = last[np.diff(bounds) == fragments[copy[last]]]
    keys = hops.message[last] << 32 | hops.head[last]
    order = np.lexsort((hops.queued[last], hops.arrived[last], keys))
    keys, last = keys[order], last[order]
    first = runs_of(keys)[:-1]
    return Arrivals(keys[first], last[first])


def chained(hops: Hops, arrivals: Arrivals) -> Integers:
    """The hop before each: of its packet, or that by which its sender had got the message."""
    relayed = arrivals.of(hops.message, hops.sender)
    late = np.append(hops.arrived, 0)[relayed] > hops.queued
    relayed[late | hops.own] = NONE
    return np.where(hops.first, relayed, _previous(hops))


def _previous(hops: Hops) -> Integers:
    """The latest arrival of a packet at the node that it then left."""
    count = len(hops.head)
    packet = ids(hops.message, hops.sender, hops.receiver, hops.copy, hops.fragment)
    where = ids(np.tile(packet, 2), np.concatenate([hops.head, hops.tail]))
    leaving = np.arange(2 * count) >= count
    at = np.concatenate([hops.arrived, hops.queued]) * 2 + leaving
    order = np.lexsort((at, where))
    found = latest(~leaving[order], runs_of(where[order]))
    left = leaving[order]
    before = np.full(count, NONE)
    before[order[left] - count] = np.append(order, NONE)[found[left]]
    return before


def known_since(hops: Hops, before: Integers) -> Integers:
    """Since when it is known where the packet of each hop was: the end of the hop before, if any."""
    since = np.where(hops.own & hops.first, hops.sent_at, hops.queued)
    return np.where(before == NONE, since, np.append(hops.arrived, 0)[before])


def own_parts(hops: Hops, before: Integers, links: Links) -> dict[str, Integers]:
    """What the time of each hop consists of, since the end of the one before."""
    ends, which = np.unique(hops.tail << 32 | hops.head, return_inverse=True)
    configured = [links[end >> 32, end & 0xFFFFFFFF] for end in ends.tolist()]
    delay, bandwidth = np.array(configured, np.int64).reshape(-1, 2)[which].T
    serialisation = hops.bytes * 8 * NS // bandwidth
    since = known_since(hops, before)
    tried = np.where(hops.first, np.maximum(first_attempts(hops), since), since)
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
    one = ids(hops.message, hops.sender, hops.fragment)
    whom = ids(one, hops.receiver)
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
    """A number from 0 for each combination of keys."""
    least = [key.min(initial=0) for key in keys]
    widths = [
        int(key.max(initial=0) - low).bit_length() for key, low in zip(keys, least, strict=True)
    ]
    if sum(widths) <= BITS:  # one key sorts faster than many
        packed = np.zeros_like(keys[0])
        for key, low, width in zip(keys, least, widths, strict=True):
            packed = packed << width | key - low
        numbers: Integers = np.unique(packed, return_inverse=True)[1]
        return numbers
    order = np.lexsort(keys[::-1])
    starts = runs_of(*(key[order] for key in keys))
    found = np.empty_like(keys[0])
    found[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return found
