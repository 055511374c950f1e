"""The application that keeps the rules of all switches as the network is.

A switch that connects gets all of its rules and then a barrier: its answer means that they are in
place. A switch tells the state of its ports when it connects, and every change. A link is up when
both of its ports are; one whose switch has not been heard of yet is taken to be up. Whenever the
set of links that are down has changed, the rules are computed again and each switch gets what is
different for it.

Several changes that came together are answered together: only when no event waits any more are the
rules computed. There is no timer in here.
"""

import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

from testbed.engines.mininet.controller import encoding, openflow
from testbed.engines.mininet.controller.openflow import handler, ofp_event, ofproto, parser
from testbed.engines.mininet.controller.rules import Arc, arc, change, rules
from testbed.engines.mininet.plan import Plan, dpid, switch_name
from testbed.engines.mininet.ways import Ways
from testbed.topologies.routing import Metric

_log = logging.getLogger(__name__)

Report = Callable[..., None]  # takes one fact as a keyword
Handler = Callable[[Any, Any], None]


@dataclass
class Reroute:
    """A change of rules that some switches have not confirmed yet."""

    started_ns: int
    down: list[Arc]
    rules: int
    waiting: set[tuple[int, int]] = field(default_factory=set)  # switch and number of the barrier


def _handles(event: Any, *states: str) -> Callable[[Handler], Any]:
    """Make a method handle an event of the switches in some states.

    The library would log an exception and go on; here it ends the controller. After each event
    the application sees whether there is something to do.
    """

    def decorate(method: Handler) -> Any:
        @wraps(method)
        def handle(self: "Router", occurrence: Any) -> None:
            try:
                method(self, occurrence)
                self.settle()
            except Exception:
                _log.exception("%s failed", method.__name__)
                self.fail("the controller has a bug: its log has the details")

        return handler.set_ev_cls(event, list(states))(handle)

    return decorate


class Router(openflow.Application):
    """Installs the rules of a network, and changes them when links go down or come up."""

    OFP_VERSIONS = (openflow.OPENFLOW_13,)

    def __init__(
        self, plan: Plan, ways: Ways | None, metric: Metric, reroutes: Path, report: Report
    ) -> None:
        super().__init__()
        self.plan, self.ways, self.metric, self.report = plan, ways, metric, report
        self.reroutes = reroutes
        self.rules = rules(plan, metric, ways=ways)
        self.links = [arc(link.a, link.b) for link in plan.links]
        self.down: set[Arc] = set()
        self.node_of = {dpid(node): node for node in range(plan.nodes)}
        self.switches: dict[int, Any] = {}  # the connections, by node
        # Which ports are up, of each switch that was ever connected.
        self.up_ports: dict[int, set[int]] = {}
        # The barrier after the rules of a switch that has connected.
        self.installing: dict[int, int] = {}
        self.in_place: set[int] = set()
        self.under_way: list[Reroute] = []
        self.ready = False

    @_handles(ofp_event.EventOFPStateChange, handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER)
    def switch_comes_or_goes(self, event: Any) -> None:
        """Install the rules of a switch that has connected; forget one that has gone."""
        switch = event.datapath
        node = self._node(switch)
        if event.state == handler.DEAD_DISPATCHER:
            if node is not None and self.switches.get(node) is switch:
                self._forget(node)
        elif node is None:
            _log.warning("a switch with the unknown number %s is ignored", switch.id)
        else:
            self._forget(node)
            self.switches[node] = switch
            self.up_ports[node] = {n for n, port in dict(switch.ports).items() if _is_up(port)}
            self.installing[node] = self._send(node, encoding.encode_rules(self.rules[node]))

    @_handles(ofp_event.EventOFPPortStatus, handler.MAIN_DISPATCHER)
    def port_changes(self, event: Any) -> None:
        """Take note of a port that went up or down, came or was removed."""
        node = self._node(event.msg.datapath)
        if node is not None and self.switches.get(node) is event.msg.datapath:
            port = event.msg.desc
            if event.msg.reason != ofproto.OFPPR_DELETE and _is_up(port):
                self.up_ports[node].add(port.port_no)
            else:
                self.up_ports[node].discard(port.port_no)

    @_handles(ofp_event.EventOFPBarrierReply, handler.MAIN_DISPATCHER)
    def rules_are_in_place(self, event: Any) -> None:
        """Take note that a switch has done all that it was told before a barrier."""
        node = self._node(event.msg.datapath)
        if node is None or self.switches.get(node) is not event.msg.datapath:
            return
        if self.installing.get(node) == event.msg.xid:
            del self.installing[node]
            if node not in self.in_place:
                self.in_place.add(node)
                self.report(in_place=node)
        self._confirm(lambda barrier: barrier == (node, event.msg.xid))

    @_handles(
        ofp_event.EventOFPErrorMsg,
        handler.HANDSHAKE_DISPATCHER,
        handler.CONFIG_DISPATCHER,
        handler.MAIN_DISPATCHER,
    )
    def switch_refuses(self, event: Any) -> None:
        """End: an emulation with some of its rules would be another network."""
        error, node = event.msg, self._node(event.msg.datapath)
        who = "a switch" if node is None else switch_name(node)
        kind = ofproto.ofp_error_type_to_str(error.type)
        code = ofproto.ofp_error_code_to_str(error.type, error.code)
        request = bytes(error.data or b"")
        what = ofproto.ofp_msg_type_to_str(request[1]) if len(request) > 1 else "a message"
        _log.error("the refused message begins with %s", request.hex())
        self.fail(f"{who} refused {what}: {kind}, {code}")

    def settle(self) -> None:
        """Reroute if the network has changed, once all that is known of it is taken in."""
        if not self.events.empty():
            return
        down = {(a, b) for a, b in self.links if not (self._leads(a, b) and self._leads(b, a))}
        if down != self.down:
            self._reroute(down)
        complete = len(self.in_place) == self.plan.nodes and not self.installing
        if complete and not self.down and not self.under_way and not self.ready:
            self.ready = True
            self.report(ready=sum(len(s.flows) + len(s.groups) for s in self.rules))

    def fail(self, sentence: str) -> None:
        """Say why, and end the process: other threads would go on."""
        _log.error("%s", sentence)
        self.report(failed=sentence)
        os._exit(2)

    def _node(self, switch: Any) -> int | None:
        return self.node_of.get(switch.id)

    def _leads(self, node: int, other: int) -> bool:
        """Say whether a switch can send to another, for all that is known."""
        return node not in self.up_ports or self.plan.ports[node][other] in self.up_ports[node]

    def _reroute(self, down: set[Arc]) -> None:
        before, self.rules = self.rules, rules(self.plan, self.metric, down, self.ways)
        self.down = down
        self.report(down=sorted(down))
        changes = [change(old, new) for old, new in zip(before, self.rules, strict=True)]
        reroute = Reroute(time.time_ns(), sorted(down), sum(map(len, changes)))
        for node, difference in enumerate(changes):
            # Who is not connected will get all rules, as they are then.
            if len(difference) and node in self.switches:
                barrier = self._send(node, encoding.encode_change(difference))
                reroute.waiting.add((node, barrier))
        self.under_way.append(reroute)
        self._confirm(lambda barrier: False)

    def _confirm(self, done: Callable[[tuple[int, int]], bool]) -> None:
        """Strike out the barriers that are done, and log the reroutes that have none left."""
        for reroute in self.under_way:
            reroute.waiting = {barrier for barrier in reroute.waiting if not done(barrier)}
            if not reroute.waiting:
                self._log_reroute(reroute)
        self.under_way = [reroute for reroute in self.under_way if reroute.waiting]

    def _log_reroute(self, reroute: Reroute) -> None:
        line = {
            "time_ns": reroute.started_ns,
            "in_place_ns": time.time_ns(),
            "down": reroute.down,
            "rules": reroute.rules,
        }
        with self.reroutes.open("a") as log:
            log.write(json.dumps(line) + "\n")

    def _forget(self, node: int) -> None:
        """A switch has gone: it keeps its rules, and gets new ones when it is back."""
        if self.switches.pop(node, None) is not None:
            _log.warning("the connection of %s has ended", switch_name(node))
        self.installing.pop(node, None)
        self._confirm(lambda barrier: barrier[0] == node)

    def _send(self, node: int, data: bytes) -> int:
        """Send messages and a barrier in one piece, and return the barrier's number."""
        switch = self.switches[node]
        barrier = parser.OFPBarrierRequest(switch)
        number: int = switch.set_xid(barrier)
        barrier.serialize()
        switch.send(data + bytes(barrier.buf))
        return number


def _is_up(port: Any) -> bool:
    return not (port.config & ofproto.OFPPC_PORT_DOWN or port.state & ofproto.OFPPS_LINK_DOWN)
