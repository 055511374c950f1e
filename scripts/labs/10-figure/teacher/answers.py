"""What a student should find: the student's own sweeps are run on the simulator."""

import math
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from testbed.run import run_experiment
from testbed.sweep.points import load_sweep


def expected(lab: Path) -> dict[str, Any]:
    """The right answers, by the names that answers.toml has for them."""
    by_size = percents(lab / "figure.toml", "nodes")
    by_fraction = percents(lab / "fractions.toml", "multicast_fraction")
    ten, forty = by_size[10], by_size[40]
    return {
        "percent_10": ten,
        "percent_20": by_size[20],
        "percent_40": forty,
        "exponent": math.log(forty / ten) / math.log(4),
        "rst_bytes_40": 4 * 40**2,
        "ks_bytes_40": 4 * 40**2 * forty / 100,
        "percent_fraction_01": by_fraction[0.1],
        "percent_fraction_09": by_fraction[0.9],
    }


def percents(file: Path, dimension: str) -> dict[float, float]:
    """Control integers of a copy in per cent of n², mean over the seeds, by a value of the file."""
    found: defaultdict[float, list[float]] = defaultdict(list)
    for experiment in load_sweep(file).points.values():
        given = vars(experiment.topology) | vars(experiment.workload)
        with tempfile.TemporaryDirectory() as runs:
            run = run_experiment(experiment, Path(runs), lambda *_: None).summary
        integers = run["control_integers"] / run["control_copies"]
        found[given[dimension]].append(100 * integers / run["nodes"] ** 2)
    return {value: mean(percent) for value, percent in found.items()}
