"""Rules as OpenFlow 1.3 messages.

A switch gets all that it is to change in one piece, so that it costs a write or two: groups before
the flows that point to them, and the other way round when they go. Many switches get the very same
message (that for host j out of port p, say), so the bytes are made once and kept.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from testbed.engines.mininet.controller.openflow import OPENFLOW_13, Protocol, ofproto, parser
from testbed.engines.mininet.controller.rules import (
    Action,
    Change,
    Match,
    Output,
    SwitchRules,
    ToGroup,
)

_PRIORITY = 100
_PROTOCOL = Protocol(OPENFLOW_13)


def encode_rules(rules: SwitchRules) -> bytes:
    """The messages that make a switch do this and nothing else, whatever it did before."""
    return b"".join(
        [
            _clean_slate(),
            *(_group(ofproto.OFPGC_ADD, group, copies) for group, copies in rules.groups.items()),
            *(_set_flow(match, action) for match, action in rules.flows.items()),
        ]
    )


def encode_change(change: Change) -> bytes:
    """The messages that bring a change about."""
    groups = [
        (ofproto.OFPGC_ADD, change.add_groups),
        (ofproto.OFPGC_MODIFY, change.modify_groups),
    ]
    return b"".join(
        [
            *(_group(how, group, copies) for how, some in groups for group, copies in some.items()),
            *(_set_flow(match, action) for match, action in change.set_flows.items()),
            *(_remove_flow(match) for match in change.remove_flows),
            *(_group(ofproto.OFPGC_DELETE, group, ()) for group in change.remove_groups),
        ]
    )


@cache
def _clean_slate() -> bytes:
    """Forget all rules, pass fragments on like other packets, and drop what matches nothing.

    Without a rule that says so, Open vSwitch hands such packets to an old controller.
    """
    return b"".join(
        [
            _bytes(parser.OFPSetConfig(_PROTOCOL, ofproto.OFPC_FRAG_NORMAL, 0)),
            _flow(ofproto.OFPFC_DELETE, parser.OFPMatch(), table_id=ofproto.OFPTT_ALL),
            _group(ofproto.OFPGC_DELETE, ofproto.OFPG_ALL, ()),
            _flow(ofproto.OFPFC_ADD, parser.OFPMatch(), priority=0),
        ]
    )


@cache
def _set_flow(match: Match, action: Action) -> bytes:
    apply = parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, _actions(action))
    return _flow(ofproto.OFPFC_ADD, _match(match), instructions=[apply])


@cache
def _remove_flow(match: Match) -> bytes:
    return _flow(ofproto.OFPFC_DELETE_STRICT, _match(match))


def _match(match: Match) -> Any:
    fields = {"eth_type": 0x0800, "ipv4_dst": match.destination}
    if match.source is not None:
        fields["ipv4_src"] = match.source
    return parser.OFPMatch(**fields)


def _actions(action: Action) -> list[Any]:
    if isinstance(action, ToGroup):
        return [parser.OFPActionGroup(action.group)]
    new = {"ipv4_dst": action.ipv4_dst, "eth_dst": action.eth_dst}
    sets = [parser.OFPActionSetField(**{name: to}) for name, to in new.items() if to is not None]
    return [*sets, parser.OFPActionOutput(action.port)]


def _flow(command: int, match: Any, *, priority: int = _PRIORITY, **more: Any) -> bytes:
    message = parser.OFPFlowMod(
        _PROTOCOL,
        command=command,
        match=match,
        priority=priority,
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
        **more,
    )
    return _bytes(message)


def _group(command: int, group: int, copies: Iterable[Output]) -> bytes:
    buckets = [_bucket(copy) for copy in copies]
    return _bytes(parser.OFPGroupMod(_PROTOCOL, command, ofproto.OFPGT_ALL, group, buckets))


@cache
def _bucket(copy: Output) -> Any:
    return parser.OFPBucket(
        watch_port=ofproto.OFPP_ANY, watch_group=ofproto.OFPG_ANY, actions=_actions(copy)
    )


def _bytes(message: Any) -> bytes:
    # The number of a message is only there to find the request that an error answers, and an
    # error repeats the request.
    message.set_xid(0)
    message.serialize()
    return bytes(message.buf)
