"""What is to be run: the experiment file, and all that follows from it and its seed."""

from testbed.experiment.document import AUTO, ENGINES, Experiment, load, parse, read_document
from testbed.experiment.network import Network, build_network
from testbed.experiment.scenario import Scenario

__all__ = [
    "AUTO",
    "ENGINES",
    "Experiment",
    "Network",
    "Scenario",
    "build_network",
    "load",
    "parse",
    "read_document",
]
