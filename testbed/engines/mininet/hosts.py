"""All hosts of a run: forked from one warm parent, started at one instant, stopped when it is quiet.

A fork copies a process that has everything imported; starting Python once for each host would take
longer than the run. A host enters its network namespace, opens its socket, and says that it is ready;
when all have, they are told the instant at which the run's clock is zero. The run is over when nobody
has anything to do and no datagram has moved for a while.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from testbed.engines.mininet.host import Host, StopHostError
from testbed.engines.mininet.namespaces import enter
from testbed.engines.mininet.plan import MULTICAST_IP, host_ip
from testbed.errors import UserError
from testbed.events import EventLog
from testbed.experiment import Experiment
from testbed.framing import frames
from testbed.network import Network
from testbed.seeds import stream

NS_PER_S = 1_000_000_000
LEAD_NS = NS_PER_S // 2  # from the last host's word to the start
PATIENCE_S = 60.0
WARM_UP = b"warm up"
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


class Hosts:
    """The processes of all hosts, as a context: none is left when it ends."""

    def __init__(
        self,
        experiment: Experiment,
        network: Network,
        run: int,
        directory: Path,
        namespaces: Sequence[int],
    ) -> None:
        self.experiment = experiment
        self.directory = directory
        self.namespaces = namespaces  # a descriptor of each host's
        self.children: list[Child] = []
        self.start = 0
        self.cold = 0  # warm-up datagrams that did not arrive
        shared = mmap.mmap(-1, 8 * network.processes)
        self.activity = memoryview(shared).cast("q")
        self.hosts = [
            Host(node, experiment, network, run, EventLog(self._events(node)), self.activity)
            for node in range(network.processes)
        ]
        sends = experiment.workload.sends(network.processes, stream(experiment.seed, "workload"))
        for at, node, payload, to in sends:
            self.hosts[node].will_send(at, payload, to)

    def __enter__(self) -> Hosts:
        try:
            for host in self.hosts:
                self.children.append(self._fork(host))
            for child in self.children:
                self._answer(child)
            self._warm_all_up()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._kill()

    def run(self, progress: Callable[[int, int], None], quiet_s: float) -> list[dict[str, Any]]:
        """Start all at one instant, wait until they are quiet, stop them; the figures of each."""
        self.start = time.monotonic_ns() + LEAD_NS
        self._tell_all(b"%d" % self.start)
        self._wait_for_quiet(progress, quiet_s)
        for child in self.children:
            os.kill(child.pid, signal.SIGTERM)
        return [json.loads(self._answer(child)) for child in self.children]

    def _wait_for_quiet(self, progress: Callable[[int, int], None], quiet_s: float) -> None:
        """Quiet is: all that is sent unasked has been, and nothing moved between two looks."""
        end = self.start + self.experiment.workload.duration
        progress(0, end - self.start)
        before = -1
        while True:
            self._sleep(quiet_s)
            moved = sum(self.activity)
            progress(min(time.monotonic_ns(), end) - self.start, end - self.start)
            if moved == before and time.monotonic_ns() > end:
                return
            before = moved

    def _sleep(self, seconds: float) -> None:
        """Sleep, but hear of a host that dies."""
        poll = select.poll()
        speakers = {child.answers.fileno(): child for child in self.children}
        for number in speakers:
            poll.register(number, select.POLLIN)
        for number, _ in poll.poll(seconds * 1000):
            raise UserError(self._died(speakers[number]))

    def _events(self, node: int) -> Path:
        return self.directory / "events" / f"h{node}.jsonl"

    def _log(self, node: int) -> Path:
        return self.directory / "hosts" / f"h{node}.log"

    def _tell_all(self, order: bytes) -> None:
        for child in self.children:
            os.write(child.orders, order)

    def _warm_all_up(self) -> None:
        """A switch may lose the very packet that it learns a flow from: once more, then."""
        for _ in range(WARM_UP_ROUNDS):
            self._tell_all(WARM_UP)
            self.cold = sum(int(self._answer(child)) for child in self.children)
            if not self.cold:
                return

    def _fork(self, host: Host) -> Child:
        orders_in, orders_out = os.pipe()
        answers_in, answers_out = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _close_all_but(orders_in, answers_out, self.namespaces[host.me])
                self._be_the_host(host, orders_in, answers_out)
                status = 0
            finally:
                os._exit(status)
        os.close(orders_in)
        os.close(answers_out)
        return Child(host.me, pid, orders_out, os.fdopen(answers_in))

    def _be_the_host(self, host: Host, orders: int, answers: int) -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        log = os.open(self._log(host.me), os.O_WRONLY | os.O_CREAT)
        os.dup2(log, sys.stderr.fileno())
        enter(self.namespaces[host.me])
        host.open()
        signal.signal(signal.SIGTERM, _stop)
        os.write(answers, b"ready\n")
        while (order := os.read(orders, 64)) == WARM_UP:
            os.write(answers, b"%d\n" % self._warm_up(host))
        if order:
            host.run(int(order))
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        host.close()
        os.write(answers, json.dumps(host.figures()).encode() + b"\n")

    def _warm_up(self, host: Host) -> int:
        """How many warm-up datagrams for this host are missing."""
        others = [other.ways() for other in self.hosts if other is not host]
        mine = {host_ip(host.me), MULTICAST_IP}
        largest = host.largest()
        whole = len(frames(largest, host.mtu, "udp")) == 1
        time.sleep(host.me * WARM_UP_GAP_S)  # all at once would be too many questions at once
        return host.warm_up(
            sum(address in mine for ways in others for address in ways),
            (1,) if whole else (1, largest),  # fragments are flows of their own
        )

    def _answer(self, child: Child) -> str:
        if not _readable(child.answers, PATIENCE_S):
            raise UserError(
                f"the process of host h{child.node} hangs: no word in {PATIENCE_S:.0f} s"
            )
        line = child.answers.readline()
        if not line:
            raise UserError(self._died(child))
        return line

    def _died(self, child: Child) -> str:
        log = self._log(child.node)
        last = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
        return (
            f"the process of host h{child.node} died: {last[0] if last else 'no word'}; see {log}"
        )

    def _kill(self) -> None:
        for child in self.children:
            os.kill(child.pid, signal.SIGKILL)
        for child in self.children:
            os.waitpid(child.pid, 0)
            os.close(child.orders)
            child.answers.close()
        self.children.clear()


def _close_all_but(*kept: int) -> None:
    """Let go of other hosts' pipes: a pipe ends when nobody holds its other end."""
    first = 3
    for number in sorted(kept):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _readable(file: TextIO, seconds: float) -> bool:
    poll = select.poll()  # unlike select() it knows any number of files
    poll.register(file, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _stop(*_: object) -> None:
    raise StopHostError
