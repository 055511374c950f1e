"""The bank of daisies with a mistake: each shows in a small experiment within what daisies promise.

For those that ``testbed fuzz`` finds soon there is also a seed.
"""

import tomllib
from typing import Any

import pytest

from scripts.reproductions.errata.cases import CASES
from testbed.fuzz import Origin, attempt, experiments
from testbed.protocols.broken import BROKEN
from testbed.protocols.daisy import Daisy
from tests.fuzz.daisies import daisies, mended

DAISIES = [name for name, protocol in BROKEN.items() if issubclass(protocol, Daisy)]


def leave(node: int, at_ms: float, **more: Any) -> dict[str, Any]:
    return {"kind": "leave", "node": node, "at_ms": at_ms, **more}


def crash(node: int) -> dict[str, Any]:
    return {"kind": "crash", "node": node}


def erratum(name: str) -> dict[str, Any]:
    """The experiment of an erratum with the right daisy."""
    document = tomllib.loads(CASES[name].file.read_text())
    return {**document, "protocol": document["protocol"][1]}


EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "broken-reentrant": (
        "gap",
        daisies(
            [{"node": 0, "at_ms": 450.91}, {"node": 1, "answers": 0}, {"node": 0, "at_ms": 470.0},
             {"node": 0, "at_ms": 504.987}],
            [{"kind": "partition", "nodes": [1], "at_ms": 309.662, "for_ms": 178.0}],
            nodes=3, group_size=2, patience_ms=100.0, grace_ms=200.0, ack_ms=2.0,
        ) | {"seed": 16, "links": {"delay_ms": 1.0, "bandwidth_mbit": 100.0}},
    ),
    "broken-hospitable": (
        "order",
        daisies(
            [{"node": 1, "at_ms": 300.0, "to": [0, 2, 4]}, {"node": 4, "answers": 0, "to": [3]},
             {"node": 3, "answers": 1, "to": [0, 2]}],
            [crash(0), leave(2, 150.0, for_ms=400.0), leave(4, 700.0)], group_size=2,
        ),
    ),
    "broken-undecided": (
        "unrepaired",
        daisies([{"node": 0, "at_ms": 0.0}], [leave(0, 0.0, for_ms=10.0)]),
    ),
    "broken-stubborn": (
        "unrepaired",
        daisies(
            [{"node": 0, "at_ms": 0.0}, {"node": 0, "at_ms": 0.81}],
            [leave(0, 0.53, for_ms=100.0), crash(1)], nodes=2,
        ),
    ),
    "broken-idle": (
        "loss",
        daisies(
            [{"node": 0, "at_ms": 10.55}, {"node": 4, "at_ms": 24.85}, {"node": 0, "at_ms": 22.0}],
            [leave(0, 33.18)],
            nodes=5, group_size=3, levels=4, ack_ms=0.0, split_above=2,
            heartbeat_ms=50.0, patience_ms=500.0, grace_ms=1000.0,
        ) | {"seed": 25},
    ),
    "broken-empty-handed": (
        "gap",
        daisies(
            [{"node": 4, "at_ms": 18.0, "to": [0, 3]}, {"node": 4, "at_ms": 21.0}], [],
            nodes=5, group_size=2, merge_below=3, ack_ms=2.0,
            heartbeat_ms=10.0, patience_ms=50.0, grace_ms=150.0,
        ) | {"seed": 12},
    ),
    "broken-releasing": (
        "gap",
        daisies(
            [{"node": 3, "at_ms": 22.763}, {"node": 2, "answers": 0}, {"node": 3, "at_ms": 0.0}],
            [{"kind": "partition", "nodes": [2], "at_ms": 31.49, "for_ms": 125.0}],
            nodes=4, group_size=1, merge_below=3, ack_ms=0.0,
            heartbeat_ms=10.0, patience_ms=50.0, grace_ms=150.0,
        ) | {
            "seed": 9,
            "topology": {"model": "line", "nodes": 4},
            "links": {"delay_ms": 0.0, "bandwidth_mbit": 10.0},
        },
    ),
    "broken-trusting": (
        "loss", daisies([{"node": 0, "at_ms": 300.0}], [crash(1)], nodes=4, group_size=2),
    ),
    "broken-reassured": ("unrepaired", mended("daisy-waits-to-send")),
    "broken-dismissive": ("loss", mended("daisy-admitted-elsewhere")),
    "broken-deserting": ("gap", mended("daisy-needed-above")),
    "broken-misguiding": ("loss", mended("daisy-comes-back-alone")),
    "broken-copied": ("gap", erratum("k-copies")),
    "broken-servers-vector": ("loss", erratum("early")),
    "broken-overtaking": ("gap", mended("daisy-overtaken")),
    "broken-deaf": ("loss", mended("daisy-split-while-it-stood-still")),
    "broken-outdated": ("gap", mended("daisy-back-before-it-was-gone")),
    "broken-forsaking": ("gap", mended("daisy-merged-without-the-absent")),
    "broken-unforgiving": ("gap", mended("daisy-old-wish")),
    "broken-discarding": ("gap", mended("daisy-started-again")),
    "broken-generous": ("order", mended("daisy-kept-for-others")),
    "broken-presuming": ("gap", mended("daisy-left-and-back-elsewhere")),
    "broken-eager": ("unrepaired", mended("daisy-behind-for-ever")),
    "broken-halting": ("loss", mended("daisy-waits-in-vain")),
    "broken-absentminded": (
        "order",
        daisies(
            [{"node": 2, "at_ms": 119.0, "to": [0, 1]}, {"node": 0, "at_ms": 140.1, "to": [1]}],
            [leave(0, 122.7, for_ms=52.0),
             {"kind": "partition", "nodes": [1], "at_ms": 118.7, "for_ms": 38.0}],
            nodes=4, group_size=2,
        ) | {"seed": 12},
    ),
}  # fmt: skip

SEEDS = {"broken-undecided": 15, "broken-trusting": 6}


def test_every_daisy_has_an_example() -> None:
    assert set(EXAMPLES) == set(DAISIES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_mistake_shows_and_the_right_daisy_passes(name: str) -> None:
    wrong, document = EXAMPLES[name]
    broken = attempt({**document, "protocol": {**document["protocol"], "name": name}})
    right = attempt(document)
    assert broken is not None
    assert right is not None
    assert (broken.wrong, right.wrong) == (wrong, None)
    assert len(document["workload"]["send"]) <= 6
    assert document["topology"]["nodes"] <= 8


@pytest.mark.parametrize(("name", "seed"), SEEDS.items())
def test_a_seed_finds_the_mistake(name: str, seed: int) -> None:
    assert any(trial.wrong for _, trial in experiments(BROKEN[name], Origin(seed)))
