"""The tables of a sweep: one row for each run, and every figure averaged over seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.figures import GIVEN
from testbed.runs.directory import RunDirectory
from testbed.sweep.points import Sweep, protocol_labels, settings_of, swept_keys

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
TREND_COLUMNS = ("protocol", "figure", "mean", "half_width", "runs")


def results(sweep: Sweep, runs: Mapping[str, Path]) -> pd.DataFrame:
    """One row for each run: the swept keys, the protocol, and its summary."""
    import pandas as pd

    keys = [key for key in swept_keys(sweep) if not key.startswith("protocol.")]
    labels = protocol_labels(sweep)
    rows = []
    for point in (point for point in sweep.points if point in runs):
        settings, summary = settings_of(sweep.points[point]), RunDirectory(runs[point]).summary
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
