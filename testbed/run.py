"""Running an experiment: from its description to a complete, checked run directory."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.check import Verdict, check_run, delays
from testbed.check.locality import local_figures
from testbed.engines import needs
from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.experiment.network import build_network
from testbed.progress import Progress
from testbed.runs.directory import RunDirectory
from testbed.topologies.channels import ExponentialChannels

ENGINES = {
    "simulate": "testbed.engines.simulate.engine",
    "mininet": "testbed.engines.mininet.engine",
    "virtual": "testbed.engines.virtual.engine",
}

SENTENCES = 5  # of each kind of violation, where a run tells of them


@dataclass(frozen=True)
class Run:
    """A run that has ended: where it is, its figures, and the oracle's verdict."""

    path: Path
    experiment: Experiment
    summary: dict[str, Any]
    verdict: Verdict
    manifest: dict[str, Any]


def choose_engine(engine: str) -> tuple[str, str]:
    """The engine that is meant, and why; "auto" prefers the real thing."""
    if engine != "auto":
        return engine, "as asked for"
    missing = [ability.name for ability in needs.emulation_in_real_time()]
    if not missing:
        return "mininet", "root, netem and Open vSwitch are here"
    virtual = (needs.mininet(), needs.openvswitch(), needs.virtual_kernel())
    if not all(ability.ok for ability in virtual):
        raise UserError(
            f"no emulation here: Mininet on this kernel lacks {', '.join(missing)}, and Mininet in "
            "virtual time lacks what scripts/setup installs; run that, or use --engine simulate"
        )
    return "virtual", f"Mininet on this kernel lacks {', '.join(missing)}"


def run_experiment(
    experiment: Experiment, runs: Path, progress: Progress, within: str = "", **manifest: Any
) -> Run:
    """Run one experiment below ``runs`` and check it.

    A run that is part of something is put ``within`` its directory, and its manifest says more.
    """
    experiment = replace(experiment, engine=choose_engine(experiment.engine)[0])
    engine = importlib.import_module(ENGINES[experiment.engine])  # some take long to import
    if experiment.engine != "simulate" and experiment.transport.framing != "udp":
        raise UserError(
            f"{experiment.file or experiment.name}: transport.framing = "
            f"{experiment.transport.framing!r} is for the simulator; real packets have headers: "
            "use 'udp'"
        )
    if experiment.engine != "simulate" and isinstance(experiment.topology, ExponentialChannels):
        raise UserError(
            f"{experiment.file or experiment.name}: topology.model = "
            f"{experiment.topology.model!r} is for the simulator; a network of links, such as "
            "'pure-random', can be emulated"
        )
    network = build_network(experiment)
    label = f"{experiment.protocol.name}-{network.processes}"
    with RunDirectory.create(
        runs,
        within or experiment.name,
        label,
        engine=experiment.engine,
        protocol=experiment.protocol.name,
        seed=experiment.seed,
        **manifest,
    ) as directory:
        directory.write_text("experiment.toml", experiment.to_toml())
        directory.write_json("network.json", network.to_json())
        figures = engine.run(experiment, network, directory, progress)
        verdict = check_run(directory.path, lambda done, of: progress("check", done, of))
        if verdict.verdict == "valid":
            figures |= delays.summarise(delays.added_delays(directory.path))
            groups = experiment.protocol.local_groups(network.processes, experiment.settings)
            figures |= local_figures(directory.path, groups) if groups else {}
        if verdict.optimistic:
            figures["lost_deliveries"] = verdict.count("loss")
        if verdict.tickets:
            figures["ticket_conflicts"] = len(verdict.conflicts)
        summary = {
            "experiment": experiment.name,
            "protocol": experiment.protocol.name,
            "seed": experiment.seed,
            "engine": experiment.engine,
            **figures,
            "verdict": verdict.verdict,
        }
        directory.write_json("summary.json", summary)
        directory.manifest["figures"] = figures
        directory.manifest["verdict"] = verdict.verdict
        if not verdict.ok:
            directory.manifest["why"] = verdict.explain(SENTENCES)
    return Run(directory.path, experiment, summary, verdict, directory.manifest)
