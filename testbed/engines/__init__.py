"""Engines: what runs a scenario, by name, and which one suits this machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from typing import Protocol as Interface

from testbed.engines import needs
from testbed.errors import SETUP, UserError

if TYPE_CHECKING:  # a guest needs nothing but the standard library
    from testbed.experiment import Scenario
    from testbed.progress import Progress
    from testbed.runs.directory import RunDirectory

_CLASSES = {
    "simulate": ("testbed.engines.simulate.engine", "Simulator"),
    "mininet": ("testbed.engines.mininet.engine", "MininetEngine"),
    "virtual": ("testbed.engines.virtual.engine", "VirtualEngine"),
}


class Engine(Interface):
    """Runs scenarios. Its events, packets and manifest go into a run directory."""

    def refuses(self, scenario: Scenario) -> str | None:
        """Why this engine cannot run a scenario, and what could be done; None if it can."""

    def run(
        self, scenario: Scenario, directory: RunDirectory, progress: Progress
    ) -> dict[str, Any]:
        """Run a scenario to its end; the figures that the engine counted."""


def load_engine(name: str) -> Engine:
    """The engine of that name, imported only now: some take long."""
    module, cls = _CLASSES[name]
    engine: Engine = getattr(import_module(module), cls)()
    return engine


def choose_engine(name: str) -> tuple[str, str]:
    """The engine that is meant, and why; "auto" looks at the machine and prefers the real thing."""
    from testbed.experiment import AUTO

    if name != AUTO:
        return name, "as asked for"
    missing = [ability.name for ability in needs.emulation_in_real_time()]
    if not missing:
        return "mininet", "root, netem and Open vSwitch are here"
    virtual = (needs.mininet(), needs.openvswitch(), needs.virtual_kernel())
    if names := ", ".join(ability.name for ability in virtual if not ability.ok):
        remedy = needs.root().remedy if missing == ["root"] else SETUP
        raise UserError(
            f"no emulation here: Mininet on this kernel lacks {', '.join(missing)}, and Mininet in "
            f"virtual time lacks {names}: {remedy}, or use --engine simulate"
        )
    return "virtual", f"Mininet on this kernel lacks {', '.join(missing)}"
