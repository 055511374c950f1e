"""A counter-example as an experiment file, which every engine runs and ``testbed live`` opens.

What happens at one moment of the counter-example happens in one slot of time. All links take a
millisecond; a message that is received later than the next slot is delayed by a fault of that message.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from testbed.errors import UserError
from testbed.explore import Exploration, Moment, make_places
from testbed.protocols import MessageId, Protocol

SLOT_MS = 10.0
LINK_MS = 1.0

Channel = tuple[int, int]  # sender, receiver


def document(result: Exploration, protocol: type[Protocol], reference: str) -> dict[str, Any]:
    """The experiment in which the protocol, by its ``reference``, goes wrong in the same way."""
    example = result.counter_example
    if example is None:
        raise UserError("there is no counter-example to save")
    if any(moment.timer is not None for moment in example.moments):
        raise UserError(
            "the counter-example has timers that run out at any moment, and an experiment file "
            "cannot say when"
        )
    groups = {
        f"g{number}": sorted(group)
        for number, group in enumerate(make_places(protocol, result.nodes)[0].groups)
    }
    content = {
        "name": f"explored-{protocol.name}",
        "protocol": {"name": reference},
        "topology": {"model": "pure-random", "nodes": result.nodes, "edge_probability": 1.0},
        "links": {"delay_ms": LINK_MS, "bandwidth_mbit": 1000},
        "workload": {"model": "script", "send": _script(example.moments, groups)},
        "fault": _delays(example.moments),
    }
    return content | ({"groups": {"model": "named", "members": groups}} if groups else {})


def _script(moments: Sequence[Moment], groups: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Every message of the execution: when it is sent, or which one it answers."""
    numbers: dict[MessageId, int] = {}
    script: list[dict[str, Any]] = []
    for slot, moment in enumerate(moments, 1):
        delivered: MessageId | None = None
        for act in moment.did.events:
            if act.kind == "deliver":
                delivered = act.name if act.name.source != moment.process else delivered
                continue
            numbers[act.name] = len(script)
            entry: dict[str, Any] = {"node": moment.process}
            if delivered is None:
                entry["at_ms"] = slot * SLOT_MS
            else:
                entry["answers"] = numbers[delivered]
            if act.to is not None:
                name = [name for name, members in groups.items() if members == sorted(act.to)]
                entry |= {"group": name[0]} if name else {"to": sorted(act.to)}
            script.append(entry)
    return script


def _delays(moments: Sequence[Moment]) -> list[dict[str, Any]]:
    """For each copy by how much it is late; what is still in transit comes at the end, in order."""
    sent: defaultdict[Channel, int] = defaultdict(int)
    transit: defaultdict[Channel, deque[tuple[MessageId, int, int]]] = defaultdict(deque)
    faults = []

    def hand_over(channel: Channel, place: int, slot: int) -> None:
        _, count, since = transit[channel][place]
        del transit[channel][place]
        late = (slot - since) * SLOT_MS - LINK_MS
        sender, receiver = channel
        faults.append(
            {
                "kind": "delay",
                "sender": sender,
                "receiver": receiver,
                "count": count,
                "late_ms": late,
            }
        )

    for slot, moment in enumerate(moments, 1):
        if moment.sender is not None:
            channel = (moment.sender, moment.process)
            names = [name for name, _, _ in transit[channel]]
            hand_over(channel, names.index(_received(moment)), slot)
        begun = slot if moment.did.events or moment.sender is not None else 0  # else it started
        for peer, message in moment.did.sends:
            sent[moment.process, peer] += 1
            entry = (message.id, sent[moment.process, peer], begun)
            transit[moment.process, peer].append(entry)
    rest = [channel for channel in sorted(transit) for _ in transit[channel]]
    for slot, channel in enumerate(rest, len(moments) + 1):
        hand_over(channel, 0, slot)
    return faults


def _received(moment: Moment) -> MessageId:
    assert moment.received is not None
    return moment.received
