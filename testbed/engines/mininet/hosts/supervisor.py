"""All hosts of a run: forked from one warm parent, started at one instant, stopped when it is quiet.

A fork copies a process that has everything imported; starting Python once for each host would take
longer than the run. A host enters its network namespace, opens its socket, and says that it is ready;
when all have, they are told the instant at which the run's clock is zero. The run is over when no fault
is to come, nobody has anything to do, no timer is set and no datagram has moved for a while.

A host that crashes is interrupted wherever it is, says what it has counted, and is killed.
"""

import ctypes
import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Self, TextIO

from typing_extensions import override

from testbed.engines.mininet.hosts import counters
from testbed.engines.mininet.hosts.conditions import Conditions
from testbed.engines.mininet.hosts.fault_injector import FaultInjector
from testbed.engines.mininet.hosts.host import JOIN, LEAVE, HostProcess, StopHostError
from testbed.engines.mininet.hosts.patience import Patience
from testbed.engines.mininet.kernel.descriptors import close_all_but, readable
from testbed.engines.mininet.kernel.namespaces import enter
from testbed.engines.mininet.ways import Ways
from testbed.errors import ProtocolError, UserError, no_exit
from testbed.experiment import Scenario
from testbed.faults import Actuator, Condition, Crash, Watch
from testbed.node.blame import fault
from testbed.packets.framing import flows_of
from testbed.plugins.blame import FAILURES
from testbed.plugins.limits import step_limit, time_limit
from testbed.plugins.source import source_of
from testbed.progress import LEVEL, Progress
from testbed.runs.directory import RunDirectory, run_id
from testbed.runs.events import EventLog

NS_PER_S = 1_000_000_000
LEAD_NS = NS_PER_S // 2  # from the last host's word to the start
PATIENCE_S = 60.0
WARM_UP = b"warm up"
FAILED = "failed: "  # how a host's last word begins if its protocol failed
WARM_UP_ROUNDS = 3
WARM_UP_GAP_S = 0.005
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None)


@dataclass
class Child:
    """A host's process, and the pipes to it."""

    node: int
    pid: int
    orders: int
    answers: TextIO

    def end(self) -> None:
        """Kill it, if it is still there, and let go of it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.orders)
        self.answers.close()


class Supervisor(Actuator):
    """The processes of all hosts, as a context: none is left when it ends.

    What faults do to hosts it does itself; what they do to links it leaves to ``conditions``.
    """

    def __init__(
        self,
        scenario: Scenario,
        directory: RunDirectory,
        namespaces: Sequence[int],
        conditions: Conditions,
        ways: Ways,
        awaited: Collection[Watch] = (),
    ) -> None:
        self.scenario = scenario
        self.conditions = conditions
        self.ways = ways
        self.run_id = run_id(directory.manifest)
        self.directory = directory
        self.namespaces = namespaces  # a descriptor of each host's
        self.children: dict[int, Child] = {}
        self.started = 0
        self.warm_ups_missing = 0  # warm-up datagrams that did not arrive
        self.cut_short = False
        self.virtual = os.environ.get("TESTBED_GUEST") == "virtual"
        self.counters = counters.SharedCounters(scenario.network.processes, awaited)
        crashes = any(isinstance(fault, Crash) for fault in scenario.experiment.faults)
        self._live = crashes or bool(awaited)
        self._paused: set[int] = set()
        self._crashed: list[dict[str, Any]] = []  # the figures of those
        self.hosts = self._make(range(scenario.network.processes))
        self._arriving = ways.arriving  # worked out here once, not in each host
        gc.freeze()  # what is here now stays: to search it would copy its pages in each host

    def __enter__(self) -> Self:
        try:
            for host in self.hosts:
                self.children[host.me] = self._fork(host)
            for child in self.children.values():
                self._answer(child)
            self._warm_all_up()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def now(self) -> int:
        """The run's clock, which stands at 0 until the start."""
        return max(0, time.monotonic_ns() - self.started)

    def run(
        self, progress: Progress, quiet_s: float, faults: FaultInjector
    ) -> list[dict[str, Any]]:
        """Start all at one instant, wait until they are quiet, stop them; the figures of each."""
        self.started = time.monotonic_ns() + LEAD_NS
        faults.begin(self.started)
        self._tell_all(b"%d" % self.started)
        self._wait_for_quiet(progress, quiet_s, faults)
        for child in self.children.values():
            os.kill(child.pid, signal.SIGTERM)
        for node in self._paused:
            os.kill(self.children[node].pid, signal.SIGCONT)
        answers = [json.loads(self._answer(child)) for child in self.children.values()]
        return self._crashed + answers

    @override
    def set_link(self, a: int, b: int, condition: Condition) -> None:
        """Changes of one instant are applied together."""
        self.conditions.set(a, b, condition)

    @override
    def kill(self, node: int) -> None:
        """By SIGTERM, on which it does nothing but say what it has counted, and SIGKILL."""
        child = self.children.pop(node)
        os.kill(child.pid, signal.SIGTERM)
        os.kill(child.pid, signal.SIGCONT)  # if it stands still
        figures = json.loads(self._answer(child))
        child.end()
        self._paused.discard(node)
        self.counters.timers[node] = self.counters.busy[node] = 0
        counted = figures["meter"]["counted"]
        counted["crashes"] = counted.get("crashes", 0) + 1
        self._crashed.append(figures)
        with self._event_log(node) as log:
            log.note(self.now(), node, "crash", {})

    @override
    def start(self, node: int) -> None:
        """Start a new process in the old namespace; it sends what is still to be sent."""
        incarnation = self.hosts[node].incarnation + 1
        (host,) = self._make([node], incarnation, self.now())
        host.meter.counted["restarts"] += 1
        self.hosts[node] = host
        with self._event_log(node) as log:
            log.note(self.now(), node, "restart", {"incarnation": incarnation})
        child = self.children[node] = self._fork(host)
        self._answer(child)
        os.write(child.orders, b"%d" % self.started)

    @override
    def pause(self, node: int) -> None:
        """By SIGSTOP; datagrams gather in its socket's buffer."""
        if node in self.children:
            os.kill(self.children[node].pid, signal.SIGSTOP)
            self._paused.add(node)

    @override
    def resume(self, node: int) -> None:
        """By SIGCONT, unless it has been killed."""
        if node in self._paused:
            os.kill(self.children[node].pid, signal.SIGCONT)
            self._paused.remove(node)

    @override
    def leave(self, node: int) -> None:
        self._order(node, LEAVE)

    @override
    def join(self, node: int) -> None:
        self._order(node, JOIN)

    def _order(self, node: int, order: bytes) -> None:
        """Tell a host's application what to do, unless it has been killed."""
        if node in self.children:
            os.write(self.children[node].orders, order)

    def _make(
        self, nodes: Sequence[int], incarnation: int = 0, since: int = 0
    ) -> list[HostProcess]:
        """Hosts that know what they are to send from a time on."""
        hosts = {
            node: HostProcess(
                node,
                self.scenario,
                self.run_id,
                self._event_log(node),
                self.counters,
                self.ways,
                incarnation,
            )
            for node in nodes
        }
        if since <= self.scenario.counted_from > 0:
            for host in hosts.values():
                host.at(self.scenario.counted_from, host.meter.forget)
        for at, node, payload, to in self.scenario.sends:
            if node in hosts and at >= since:
                hosts[node].will_send(at, payload, to)
        return list(hosts.values())

    def _wait_for_quiet(self, progress: Progress, quiet_s: float, faults: FaultInjector) -> None:
        """Quiet is: all that was planned is over, and nothing moved between two looks."""
        end = self.started + self.scenario.last_send
        progress("emulate", 0, end - self.started)
        before, patience = -1, Patience(self.counters, self.virtual)
        while True:
            self._sleep(quiet_s, faults)
            moved = sum(self.counters.moved)
            now = time.monotonic_ns()
            progress("emulate", min(now, end) - self.started, end - self.started)
            deliveries = sum(self.counters.deliveries)
            levels = {"clock": now - self.started, "deliveries": deliveries, "datagrams": moved}
            for name, level in levels.items():
                progress(name, level, LEVEL)
            planned = max(end, faults.latest)
            over = now > planned and not faults.pending()
            if over and self._at_rest(now - planned, moved == before):
                return
            if over and self.scenario.experiment.protocol.rests:
                self._lose(patience, now, planned)
            self.cut_short = over and deliveries > self.scenario.most_deliveries
            if self.cut_short:
                return
            before = moved

    def _at_rest(self, since: int, still: bool) -> bool:
        """Whether nothing moves and no timer is set; a protocol that never rests has its time."""
        if self.scenario.experiment.protocol.rests:
            awake = self.children.keys() - self._paused
            computing = any(self.counters.busy[node] for node in awake)
            return still and not computing and not self._timers_set()
        return since > self.scenario.experiment.workload.settling

    def _lose(self, patience: Patience, now: int, planned: int) -> None:
        """Have the hosts find where a protocol goes on in vain; if none does, say it without a line."""
        if patience.is_lost(now, planned) and (nodes := self._timers_set()):
            raise ProtocolError(
                f"{self.scenario.experiment.protocol.name} does not rest: it goes on without end, with "
                f"timers in {nodes}, {(now - planned) // NS_PER_S} s after all was sent; a protocol "
                "that is meant to says rests = False"
            )

    def _timers_set(self) -> list[int]:
        """The processes in which a timer is set."""
        awake = self.children.keys() - self._paused
        return [node for node in sorted(awake) if self.counters.timers[node]]

    def _sleep(self, seconds: float, faults: FaultInjector) -> None:
        """Sleep, but do harm when it is due, and hear of a host that dies of something else."""
        until = time.monotonic_ns() + round(seconds * NS_PER_S)
        while (remaining := until - time.monotonic_ns()) > 0:
            poll = select.poll()
            speakers = {child.answers.fileno(): child for child in self.children.values()}
            for number in (*speakers, *faults.files()):
                poll.register(number, select.POLLIN)
            ready = [number for number, _ in poll.poll(remaining / 1e6)]
            for number in ready:
                if number in speakers:
                    child = speakers[number]
                    raise self._died(child, child.answers.readline())
            if ready:
                faults.advance()

    def _event_log(self, node: int) -> EventLog:
        path = self.directory.event_log(node)
        return counters.LiveLog(path, self.counters) if self._live else EventLog(path)

    def _tell_all(self, order: bytes) -> None:
        for child in self.children.values():
            os.write(child.orders, order)

    def _warm_all_up(self) -> None:
        """A switch may lose the very packet that it learns a flow from: once more, then."""
        for _ in range(WARM_UP_ROUNDS):
            self._tell_all(WARM_UP)
            self.warm_ups_missing = sum(
                int(self._answer(child)) for child in self.children.values()
            )
            if not self.warm_ups_missing:
                return

    def _fork(self, host: HostProcess) -> Child:
        orders_in, orders_out = os.pipe()
        answers_in, answers_out = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                close_all_but(orders_in, answers_out, self.namespaces[host.me], self.counters.tell)
                with no_exit(), self._limit():
                    self._be_the_host(host, orders_in, answers_out)
                status = 0
            except FAILURES as error:
                self.counters.failed[0] = 1
                traceback.print_exc()  # into the host's log, whose last line is what people see
                if its := fault(error):
                    sentence = its.of(self.scenario.experiment.protocol)
                    os.write(answers_out, f"{FAILED}{sentence}\n".encode())
            finally:
                os._exit(status)
        os.close(orders_in)
        os.close(answers_out)
        return Child(host.me, pid, orders_out, os.fdopen(answers_in))

    def _limit(self) -> AbstractContextManager[None]:
        """What ends a call of the protocol that goes on for ever; the testbed's own are trusted."""
        source = source_of(self.scenario.experiment.protocol)
        if not self.virtual:
            return time_limit()
        return step_limit(str(source.file)) if source else nullcontext()

    def _be_the_host(self, host: HostProcess, orders: int, answers: int) -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        log = os.open(self.directory.host_log(host.me), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, sys.stderr.fileno())
        enter(self.namespaces[host.me])
        host.open()
        signal.signal(signal.SIGTERM, _stop)
        with suppress(StopHostError):
            os.write(answers, b"ready\n")
            while (order := os.read(orders, 64)) == WARM_UP:
                os.write(answers, b"%d\n" % self._warm_up(host))
            if order:
                host.run(int(order), orders)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        host.close()
        os.write(answers, json.dumps(host.figures()).encode() + b"\n")

    def _warm_up(self, host: HostProcess) -> int:
        """How many warm-up datagrams for this host are missing."""
        sizes = flows_of(host.largest_message(), host.mtu)
        time.sleep(host.me * WARM_UP_GAP_S)  # all at once would be too many questions at once
        return host.warm_up(self._arriving[host.me], sizes)

    def _answer(self, child: Child) -> str:
        if not readable(child.answers, PATIENCE_S):
            raise UserError(
                f"the process of host h{child.node} hangs: no word in {PATIENCE_S:.0f} s"
            )
        line = child.answers.readline()
        if not line or line.startswith(FAILED):
            raise self._died(child, line)
        return line

    def _died(self, child: Child, word: str) -> UserError:
        log = self.directory.host_log(child.node)
        if word.startswith(FAILED):
            return ProtocolError(f"{word.removeprefix(FAILED).strip()}; see {log}")
        last = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
        return UserError(
            f"the process of host h{child.node} died: {last[0] if last else 'no word'}; see {log}"
        )

    def _end(self) -> None:
        for child in self.children.values():
            child.end()
        self.children.clear()
        self.counters.close()


def _stop(*_: object) -> None:
    raise StopHostError
