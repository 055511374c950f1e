"""Running an experiment: from its description to a complete, checked run directory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from testbed.check import CHECKS, Verdict, check_run, promises_json
from testbed.engines import choose_engine, load_engine
from testbed.errors import UserError
from testbed.experiment import Experiment, Scenario
from testbed.experiment.estimate import Estimate
from testbed.progress import Progress
from testbed.runs.directory import RunDirectory

SENTENCES = 5  # of each kind of violation, where a run tells of them


@dataclass(frozen=True)
class Run:
    """A run that has ended: where it is, its figures, and the oracle's verdict."""

    path: Path
    experiment: Experiment
    summary: dict[str, Any]
    verdict: Verdict
    manifest: dict[str, Any]


@contextmanager
def prepare(
    scenario: Scenario, runs: Path, within: str = "", **manifest: Any
) -> Iterator[RunDirectory]:
    """A new run directory below ``runs``, with all that an engine in a guest needs to know."""
    experiment = scenario.experiment
    with RunDirectory.create(
        runs,
        within or experiment.name,
        f"{experiment.protocol.name}-{scenario.network.processes}",
        engine=experiment.engine,
        protocol=experiment.protocol.name,
        seed=experiment.seed,
        promises=promises_json(scenario),
        **manifest,
    ) as directory:
        directory.save(scenario)
        yield directory


def run_experiment(
    experiment: Experiment,
    runs: Path,
    progress: Progress,
    within: str = "",
    warn: Callable[[str], None] = lambda sentence: None,
    **manifest: Any,
) -> Run:
    """Run one experiment below ``runs`` and check it; ``warn`` is told if that will take long.

    A run that is part of something is put ``within`` its directory, and its manifest says more.
    """
    engine_name, _ = choose_engine(experiment.engine)
    experiment = replace(experiment, engine=engine_name)
    scenario, engine = Scenario.of(experiment), load_engine(engine_name)
    if reason := engine.refuses(scenario):
        raise UserError(f"{experiment.origin}: {reason}")
    if long := Estimate.of(scenario).check(runs):
        warn(long)
    with prepare(scenario, runs, within, **manifest) as directory:
        directory.manifest["figures"] = figures = engine.run(scenario, directory, progress)
        directory.seal()
        directory.write_manifest()
        verdict = check_run(directory.path, partial(progress, "check"), CHECKS)
        figures |= verdict.figures
        summary = {
            "experiment": experiment.name,
            "protocol": experiment.protocol.name,
            "seed": experiment.seed,
            "engine": experiment.engine,
            **figures,
            "verdict": verdict.verdict,
        }
        directory.write_summary(summary)
        directory.manifest["verdict"] = verdict.verdict
        if not verdict.ok:
            directory.manifest["why"] = verdict.explain(SENTENCES)
    return Run(directory.path, experiment, summary, verdict, directory.manifest)
