"""What the protocol of a run promises: written into the manifest as the run begins.

So the oracle need not know any protocol. The manifest of an older run does not say it; then the
registry of protocols is asked, and a run of which nothing can be learned is judged strictly.
"""

from typing import Any

from testbed.check.verdict import Promises
from testbed.errors import UserError
from testbed.experiment import Scenario
from testbed.protocols import PROTOCOLS
from testbed.protocols.broken import BROKEN
from testbed.runs.directory import RunDirectory


def promises_json(scenario: Scenario) -> dict[str, Any]:
    """What the protocol of a scenario promises, for the manifest."""
    experiment = scenario.experiment
    groups = experiment.protocol.local_groups(scenario.place(0), experiment.settings)
    return {
        "optimistic": experiment.protocol.optimistic,
        "local_groups": [sorted(group) for group in groups],
        "ring_failures": experiment.protocol.ring_failures(experiment.settings),
    }


def promises_of(run: RunDirectory) -> Promises:
    """What the protocol of a run promised."""
    try:
        content = run.manifest["promises"]
        groups = tuple(frozenset(group) for group in content["local_groups"])
        lasted = run.manifest.get("figures", {}).get("duration_ms", 0)
        return Promises(content["optimistic"], groups, lasted, content.get("ring_failures", 0))
    except (UserError, KeyError, TypeError):
        return Promises(_is_optimistic(run))


def _is_optimistic(run: RunDirectory) -> bool:
    try:
        return (PROTOCOLS | BROKEN)[run.document["protocol"]["name"]].optimistic
    except (UserError, KeyError, TypeError):
        return False
