"""The points of a sweep: experiments by their identity, and what distinguishes them.

Every point is an experiment like any other, known by the hash of its resolved file and of its code, and
its run is a run directory like any other; see ``testbed.sweep.directory``.
"""

import json
import math
import tomllib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from testbed.engines import choose_engine
from testbed.errors import UserError
from testbed.experiment import Experiment, read_document
from testbed.experiment.expand import expand, flatten, identity
from testbed.experiment.seeds import stream
from testbed.plugins.code import code_hash


@dataclass(frozen=True)
class Sweep:
    """The points of a sweep, by their identity."""

    name: str
    points: dict[str, Experiment]

    @classmethod
    def of(cls, experiments: list[Experiment]) -> Self:
        """The sweep of these points; equal points are one, and "auto" is resolved to an engine."""
        names = sorted({experiment.name for experiment in experiments})
        if len(names) != 1:
            raise UserError(f"name = {names}: it names the directory of the sweep; give one")
        engines = {e.engine: choose_engine(e.engine)[0] for e in experiments}
        resolved = [replace(e, engine=engines[e.engine]) for e in experiments]
        points = {identity(e.to_toml(), code_hash(e.protocol)): e for e in resolved}
        return cls(names[0], points)

    @cached_property
    def within(self) -> str:
        """The directory of the sweep, from the directory of all runs: the same for other code."""
        texts = [identity(experiment.to_toml()) for experiment in self.points.values()]
        return f"{self.name}/sweep-{identity(*sorted(texts))}"


def load_sweep(file: Path) -> Sweep:
    """The sweep of a file; a file without lists is a sweep of its protocols."""
    return Sweep.of(expand(read_document(file), file))


def cost(experiment: Experiment) -> float:
    """Roughly how long a point takes, compared with others: the number of copies of messages."""
    nodes = getattr(experiment.topology, "nodes", experiment.workload.senders)
    workload = experiment.workload
    try:
        sends = sum(1 for _ in workload.sends(nodes, stream(experiment.seed, "workload")))
    except (ValueError, KeyError):  # what does not fit the network: the run will say so
        return 0
    copies = math.log2(nodes + 1) if experiment.protocol.needs_overlay else 1
    return sends * (1 + workload.answers_per_message()) * nodes * copies


def swept_keys(sweep: Sweep) -> list[str]:
    """The keys that differ between points, in the order of the file; the seed is not one."""
    rows = [settings_of(experiment) for experiment in sweep.points.values()]
    return [key for key in _varying(rows) if key != "seed"]


def settings_of(experiment: Experiment) -> dict[str, Any]:
    """All keys of an experiment; a channel without settings is named like one that has some."""
    flat = flatten(tomllib.loads(experiment.to_toml()))
    return {"channel.model" if key == "channel" else key: value for key, value in flat.items()}


def protocol_labels(sweep: Sweep) -> dict[str, str]:
    """What to call the protocol of each point: its name, and the settings in which it varies."""
    texts = {point: experiment.to_toml() for point, experiment in sweep.points.items()}
    rows = {point: flatten(tomllib.loads(text)["protocol"]) for point, text in texts.items()}
    for point, row in rows.items():
        row["name"] = sweep.points[point].protocol.name
    names = {row["name"] for row in rows.values()}
    varying = {name: _varying([r for r in rows.values() if r["name"] == name]) for name in names}
    return {
        point: ", ".join([row["name"], *(_setting(key, row) for key in varying[row["name"]])])
        for point, row in rows.items()
    }


def _setting(key: str, row: dict[str, Any]) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else f"{key}={value}"


def _varying(rows: list[dict[str, Any]]) -> list[str]:
    """The keys in which rows differ; one that only some of them have is such a key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return [key for key in keys if len({json.dumps(row.get(key)) for row in rows}) > 1]


def describe(sweep: Sweep, point: str) -> str:
    """A point in words: what sets it apart from the others."""
    settings = settings_of(sweep.points[point])
    keys = [key for key in swept_keys(sweep) if not key.startswith("protocol.") and key in settings]
    words = [protocol_labels(sweep)[point], *(f"{key} = {settings[key]}" for key in keys)]
    return ", ".join([*words, f"seed {settings['seed']}"])
