"""Protocols compared in pairs: the same network and workload, seed by seed.

Runs with one seed have the same network, so most of what differs between seeds does not differ between
the two protocols. The mean of the differences has a narrower interval than the two means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from testbed.sweep.tables import CONFIDENCE, dimensions

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("protocol", "base", "figure", "difference", "half_width", "ratio", "seeds", "more")


def paired(points: pd.DataFrame, trends: pd.DataFrame, figures: Iterable[str]) -> pd.DataFrame:
    """Each protocol against the first, for each combination of keys and each figure.

    ``difference`` is the mean over seeds with the ``half_width`` of its confidence interval, ``ratio``
    the geometric mean of the ratios, and ``more`` in how many of the ``seeds`` the figure was greater.
    """
    import numpy as np
    import pandas as pd
    from scipy.stats import t

    keys = dimensions(trends)
    protocols = list(dict.fromkeys(points["protocol"]))
    rows = []
    for figure in figures:
        if figure not in points or len(protocols) < 2:
            continue
        wide = points.pivot_table(figure, [*keys, "seed"], "protocol", sort=False)
        for other in protocols[1:]:
            both = wide.reindex(columns=[protocols[0], other]).dropna()
            level = keys if len(keys) > 1 else keys[:1] and keys[0]
            groups = both.groupby(level=level, sort=False) if keys else [((), both)]
            for values, group in groups:
                base, its = (group[name].to_numpy(float) for name in (protocols[0], other))
                apart, count = its - base, len(group)
                half = np.nan
                if count > 1:
                    half = apart.std(ddof=1) / count**0.5 * t.ppf((1 + CONFIDENCE) / 2, count - 1)
                positive = bool((base > 0).all() and (its > 0).all())
                ratio = float(np.exp(np.log(its / base).mean())) if positive else np.nan
                found = (other, protocols[0], figure, apart.mean(), half, ratio, count)
                where = values if isinstance(values, tuple) else (values,)
                rows.append((*where, *found, int((apart > 0).sum())))
    return pd.DataFrame(rows, columns=[*keys, *COLUMNS])
