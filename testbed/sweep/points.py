"""A sweep: every combination of the values that an experiment file lists, and what came of them.

Where one value is wanted, a list is a dimension; where the key itself takes a list, a list of lists
is one; an array of tables such as [[topology]] gives alternatives, values that go together, but for
[[fault]], all of which happen. Which it is, is decided by the type of the key. Every point is an
experiment like any other, known by the hash of its resolved file, and its run is a run directory like
any other, in

    runs/<name>/sweep-<hash of all points>/
      sweep.toml        the file that was swept
      <run>/            one for each point; its manifest names the point
      points.parquet    one row a run: the swept keys, the protocol, the verdict, all figures
      trends.parquet    every figure averaged over seeds: mean, 95 % half-width, number of runs
      figures/          and report.html: the same to look at
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import math
import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from testbed.engines import choose_engine
from testbed.errors import UserError
from testbed.experiment import Experiment, fits, key_types, naming_key, parse, read_document
from testbed.experiment.seeds import stream
from testbed.figures import GIVEN
from testbed.progress import Progress
from testbed.run import run_experiment
from testbed.runs.directory import read_json, read_manifest

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
TREND_COLUMNS = ("protocol", "figure", "mean", "half_width", "runs")


def _no_progress(stage: str, done: int, of: int) -> None:
    pass


@dataclass(frozen=True)
class Sweep:
    """The points of a sweep, by their identity."""

    name: str
    points: dict[str, Experiment]

    @classmethod
    def of(cls, experiments: list[Experiment]) -> Sweep:
        """Points that are the same are one; the engine that "auto" means is settled here."""
        names = sorted({experiment.name for experiment in experiments})
        if len(names) != 1:
            raise UserError(f"name = {names}: it names the directory of the sweep; give one")
        engines = {e.engine: choose_engine(e.engine)[0] for e in experiments}
        resolved = [replace(e, engine=engines[e.engine]) for e in experiments]
        return cls(names[0], {identity(e.to_toml()): e for e in resolved})

    @property
    def within(self) -> str:
        """The directory of the sweep, from the directory of all runs."""
        return f"{self.name}/sweep-{identity(*sorted(self.points))}"


def load_sweep(file: Path) -> Sweep:
    """The sweep of a file; a file without lists is a sweep of its protocols."""
    return Sweep.of(expand(read_document(file), file))


def identity(*texts: str) -> str:
    """A short hash that names what it is made of."""
    return sha256("\n".join(texts).encode()).hexdigest()[:12]


def expand(document: Mapping[str, Any], file: Path) -> list[Experiment]:
    """Every combination of what a document lists, each as an experiment."""
    axes = [[(key, v) for v in _variants(key, value, file)] for key, value in document.items()]
    return [point for choice in product(*axes) for point in parse(dict(choice), file)]


def _variants(key: str, value: Any, file: Path) -> list[Any]:
    """What a key of the file itself, or a table, is to be in turn."""
    kind = key_types("", {}).get(key)
    if key == "fault" and fits(kind, value):  # tables that are all there
        return [list(choice) for choice in product(*(_tables(key, t, file) for t in value))]
    listed = value if key == "protocol" and isinstance(value, list) else None
    values = listed or _values(kind, value, key, file)
    return [t for v in values for t in (_tables(key, v, file) if isinstance(v, dict) else [v])]


def _tables(name: str, content: dict[str, Any], file: Path) -> list[dict[str, Any]]:
    """Every combination of what a table lists; the model first, since it brings the keys."""
    key = naming_key(name)
    if isinstance(models := content.get(key), list) and models:
        return [t for model in models for t in _tables(name, {**content, key: model}, file)]
    return _combinations(content, key_types(name, content), name, file)


def _combinations(
    content: dict[str, Any], types: Mapping[str, Any], where: str, file: Path
) -> list[dict[str, Any]]:
    axes = [
        [(key, v) for v in _values(types.get(key), value, f"{where}.{key}", file)]
        for key, value in content.items()
    ]
    return [dict(choice) for choice in product(*axes)]


def _values(kind: Any, value: Any, where: str, file: Path) -> list[Any]:
    """What a key is to be in turn: a value that fits is one value, any other list is many."""
    if kind is None or fits(kind, value):
        return [value]
    if isinstance(value, list):
        if not value:
            raise UserError(f"{file}: {where} = []: give at least one value to sweep over")
        return value
    if isinstance(value, dict) and dataclasses.is_dataclass(kind):
        return _combinations(value, get_type_hints(kind), where, file)
    return [value]


def flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with keys such as ``topology.nodes`` and ``fault.2.rate``."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            flat |= flatten({str(n): v for n, v in enumerate(value, 1)}, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def cost(experiment: Experiment) -> float:
    """Roughly how long a point takes, compared with others: who gets how many messages."""
    nodes = getattr(experiment.topology, "nodes", experiment.workload.senders)
    workload = experiment.workload
    try:
        sends = sum(1 for _ in workload.sends(nodes, stream(experiment.seed, "workload")))
    except (ValueError, KeyError):  # what does not fit the network: the run will say so
        return 0
    copies = math.log2(nodes + 1) if experiment.protocol.needs_overlay else 1
    return sends * (1 + workload.answers_per_message()) * nodes * copies


def run_point(
    sweep: str, point: str, experiment: Experiment, runs: Path, progress: Progress = _no_progress
) -> str | None:
    """Run one point within the directory of its sweep; why it failed, if it did."""
    try:
        with busy(runs / sweep):
            run_experiment(experiment, runs, progress, within=sweep, point=point)
    except UserError as error:
        return str(error)
    except Exception as error:  # whatever it is, the other points go on
        return f"{type(error).__name__}: {error}"
    return None


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep every other sweep out of a directory, and wait for runs whose sweep was killed."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{directory}: this sweep is running already; wait for it, or interrupt it first"
            ) from None
        with busy(directory, fcntl.LOCK_EX):
            pass
        yield


@contextmanager
def busy(directory: Path, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """Held by every run of a sweep while it writes, so that none is taken for dead."""
    with (directory / ".busy").open("w") as lock:
        fcntl.flock(lock, how)
        yield


def finished(directory: Path, sweep: Sweep) -> dict[str, Path]:
    """The runs that need not be repeated, by point."""
    found = {}
    for path in _runs(directory):
        try:
            manifest = read_manifest(path)
        except UserError:
            continue
        whole = manifest["status"] == "complete" and "verdict" in manifest
        if whole and manifest.get("point") in sweep.points and (path / "summary.json").is_file():
            found[manifest["point"]] = path
    return found


def remove_unfinished(directory: Path, sweep: Sweep) -> int:
    """Remove what runs that were stopped or failed have left; how many there were."""
    keep = set(finished(directory, sweep).values())
    left = [path for path in _runs(directory) if path not in keep]
    for path in left:
        shutil.rmtree(path)
    for link in directory.glob(".latest-*"):
        link.unlink(missing_ok=True)
    return len(left)


def _runs(directory: Path) -> list[Path]:
    named = re.compile(r"\d{8}-\d{6}-")  # as testbed.runs.directory names them
    return sorted(p for p in directory.iterdir() if named.match(p.name) and p.is_dir())


def swept_keys(sweep: Sweep) -> list[str]:
    """The keys that differ between points, in the order of the file; the seed is not one."""
    rows = [_settings(experiment) for experiment in sweep.points.values()]
    return [key for key in _varying(rows) if key != "seed"]


def _settings(experiment: Experiment) -> dict[str, Any]:
    """All keys of an experiment; a channel without settings is named like one that has some."""
    flat = flatten(tomllib.loads(experiment.to_toml()))
    return {"channel.model" if key == "channel" else key: value for key, value in flat.items()}


def protocol_labels(sweep: Sweep) -> dict[str, str]:
    """What to call the protocol of each point: its name, and the settings in which it varies."""
    texts = {point: experiment.to_toml() for point, experiment in sweep.points.items()}
    rows = {point: flatten(tomllib.loads(text)["protocol"]) for point, text in texts.items()}
    names = {row["name"] for row in rows.values()}
    varying = {name: _varying([r for r in rows.values() if r["name"] == name]) for name in names}
    return {
        point: ", ".join(
            [row["name"], *(_setting(key, row.get(key)) for key in varying[row["name"]])]
        )
        for point, row in rows.items()
    }


def _setting(key: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{key}={value}"


def _varying(rows: list[dict[str, Any]]) -> list[str]:
    """The keys in which rows differ; one that only some of them have is such a key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return [key for key in keys if len({json.dumps(row.get(key)) for row in rows}) > 1]


def describe(sweep: Sweep, point: str) -> str:
    """A point in words: what sets it apart from the others."""
    settings = _settings(sweep.points[point])
    keys = [key for key in swept_keys(sweep) if not key.startswith("protocol.") and key in settings]
    words = [protocol_labels(sweep)[point], *(f"{key} = {settings[key]}" for key in keys)]
    return ", ".join([*words, f"seed {settings['seed']}"])


def results(sweep: Sweep, runs: Mapping[str, Path]) -> pd.DataFrame:
    """One row for each run: the swept keys, the protocol, and its summary."""
    import pandas as pd

    keys = [key for key in swept_keys(sweep) if not key.startswith("protocol.")]
    labels = protocol_labels(sweep)
    rows = []
    for point in (point for point in sweep.points if point in runs):
        settings = _settings(sweep.points[point])
        summary = read_json(runs[point] / "summary.json", "the run has no figures")
        named = {key: _plain(settings.get(key)) for key in keys} | {"protocol": labels[point]}
        origin = {"seed": settings["seed"], "point": point, "run": runs[point].name}
        origin["valid"] = int(summary["verdict"] == "valid")
        figures = {k: v for k, v in summary.items() if not isinstance(v, dict | list)}
        rows.append(named | origin | {k: v for k, v in figures.items() if k not in named | origin})
    frame = pd.DataFrame(rows)
    for key in keys:
        if frame[key].dtype == object and frame[key].map(type).nunique() > 1:
            frame[key] = frame[key].map(str)
    return frame


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def averages(points: pd.DataFrame) -> pd.DataFrame:
    """Every figure's mean over seeds, the half-width of its 95 % confidence interval, and runs.

    By Student's t, since runs are few. One run has no spread: its half-width is not a number.
    """
    from scipy.stats import t

    keys = list(points.columns[: points.columns.get_loc("protocol")])
    numbers = points.select_dtypes("number").columns
    given = [*keys, *(figure.key for figure in GIVEN)]
    figures = [name for name in numbers if name not in given]
    long = points.melt([*keys, "protocol"], figures, var_name="figure").dropna(subset="value")
    groups = long.groupby([*keys, "protocol", "figure"], dropna=False, sort=False)["value"]
    found = groups.agg(["mean", "sem", "count"]).reset_index()
    found["half_width"] = found["sem"] * t.ppf((1 + CONFIDENCE) / 2, found["count"] - 1)
    found = found.rename(columns={"count": "runs"})[[*keys, *TREND_COLUMNS]]
    return found.sort_values(keys, kind="stable", ignore_index=True) if keys else found


def dimensions(trends: pd.DataFrame, first: str | None = None) -> list[str]:
    """The swept keys that the others follow from; ``first`` comes first."""
    keys = list(trends.columns[: trends.columns.get_loc("protocol")])
    if first is not None:
        keys = [first, *(key for key in keys if key != first)]
    chosen: list[str] = []
    found = 1
    for key in keys:
        if (combinations := len(trends[[*chosen, key]].drop_duplicates())) > found:
            chosen.append(key)
            found = combinations
    return chosen


def write_table(frame: pd.DataFrame, file: Path) -> None:
    """A Parquet file that is there whole or not at all."""
    part = file.with_name(f".{file.name}.part")
    frame.to_parquet(part, index=False)
    os.replace(part, file)
