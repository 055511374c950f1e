"""Claims of papers, judged on made-up numbers: for some they hold, and not for others."""

from collections.abc import Mapping
from typing import Any

from scripts.reproductions.claims import Claim

Change = dict[Any, dict[str, float]]  # of which point: the figures that are different
Case = tuple[list[Change], list[Change]]  # what a claim still tolerates, and what it does not


def edge(point: Any, figure: str, tolerable: float, intolerable: float) -> Case:
    """The last value of a figure that a claim tolerates, and the first that it does not."""
    return [{point: {figure: tolerable}}], [{point: {figure: intolerable}}]


def hold_against(claim: Claim[Any], good: Mapping[Any, Any], case: Case) -> None:
    """See that a claim holds for good numbers and what it tolerates, and for nothing else."""
    for holds, changes in zip((True, False), ([{}, *case[0]], case[1]), strict=True):
        for change in changes:
            different = {point: good[point]._replace(**its) for point, its in change.items()}
            assert claim.judge({**good, **different}).holds is holds, change
