"""A simulation that tells of every message as it is sent from one process to others."""

from collections.abc import Callable
from typing import Any, cast

from typing_extensions import override

from testbed.engines.simulate.engine import Simulation
from testbed.experiment import Scenario
from testbed.node import Node
from testbed.node.environment import Runtime
from testbed.node.log import Log
from testbed.protocols import Message

Tell = Callable[[Message, int, int], None]  # a message, its number of copies, and the time


class ToldSimulation(Simulation):
    """A simulation, and whom it tells."""

    def __init__(self, scenario: Scenario, log: Log, tell: Tell) -> None:
        self.tell = tell
        super().__init__(scenario, log)

    @override
    def node(self, me: int, incarnation: int = 0) -> Node:
        node = super().node(me, incarnation)
        node.runtime = cast(Runtime, _Told(self))
        return node


class _Told:
    """The network as a node sees it."""

    def __init__(self, simulation: ToldSimulation) -> None:
        self._simulation = simulation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._simulation.network, name)

    def unicast(self, sender: int, peers: tuple[int, ...], message: Message) -> None:
        """Tell, and send."""
        network = self._simulation.network
        self._simulation.tell(message, len(peers), network.scheduler.now)
        network.unicast(sender, peers, message)
