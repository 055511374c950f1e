"""A run of which only the figures are wanted: simulated and judged in memory, and not written down.

Where a paper's scale takes hundreds of millions of deliveries, their event logs would fill a disk, and
to write and to read them would take a third of the time.
"""

from typing import Any

from typing_extensions import override

from testbed.check.logs import Logs, NodeLog
from testbed.check.oracle import check_order, open_case
from testbed.check.verdict import Promises, Verdict
from testbed.engines.simulate.engine import Simulation
from testbed.errors import UserError
from testbed.experiment import Experiment, Scenario
from testbed.node.log import Log
from testbed.protocols import MessageId


class Evidence(Log):
    """What the oracle needs to know of sends and deliveries, as it keeps that itself."""

    def __init__(self, processes: int) -> None:
        self.logs = Logs(range(processes))
        self.logs.of = {node: NodeLog() for node in range(processes)}

    @override
    def send(
        self,
        t: int,
        node: int,
        name: MessageId,
        to: frozenset[int] | None,
        payload: int,
        control: int = 0,
    ) -> None:
        line = {"t": t, "event": "send", "source": name.source, "seq": name.seq, "to": to}
        self.logs.add(self.logs.of[node], node, line)

    @override
    def deliver(self, t: int, node: int, source: int, seq: int) -> None:
        logs = self.logs
        log, numbers = logs.of[node], logs.numbers
        log.events.append(numbers.setdefault((source, seq), len(numbers)))
        log.times.append(t)

    def verdict(self) -> Verdict:
        """Whether every delivery was in causal order, and none is missing."""
        return check_order(*open_case(self.logs, Promises()), lambda done, of: None)


def measured(experiment: Experiment) -> dict[str, Any]:
    """The figures of a run without faults of a protocol that loses nothing; it must be valid."""
    scenario = Scenario.of(experiment)
    evidence = Evidence(scenario.network.processes)
    simulation = Simulation(scenario, evidence)
    simulation.run(lambda what, done, of: None)
    verdict = evidence.verdict()
    if not verdict.ok:
        raise UserError(f"{experiment.origin}: causal order is {'; '.join(verdict.explain(1))}")
    return simulation.summary()
