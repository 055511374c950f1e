"""Experiment files drawn from the schema: as they should be, or broken by one edit.

The keys and their types come from the dataclasses that files are checked against, so a new model or
protocol is drawn by itself.
"""

import copy
import signal
import traceback
import types
from collections import Counter
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.engines.simulate.engine import RunEnded, Simulation
from testbed.errors import UserError
from testbed.experiment import Scenario, parse
from testbed.experiment.document import _REGISTRIES, ENGINES, key_types, naming_key
from testbed.experiment.estimate import Estimate
from testbed.node.log import Log
from testbed.protocols import PROTOCOLS

PATIENCE_S = 5.0  # of processor time, for one file
MOST_DELIVERIES = 2_000  # of a run that is simulated too
NASTY: list[Any] = [
    *(0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.5, 1e-300, 1e308, float("nan")),
    *(float("inf"), float("-inf"), True, "", "x", "\0", "ü", "a" * 300, "../x", [], [[]], {}),
    *([1, 2, 3], [0.0, -1.0], {"x": 1}, [{"kind": "loss"}]),
]
SMALL = {int: st.integers(1, 9), float: st.floats(0.01, 20.0), bool: st.booleans()}
LEVEL = {"nodes": 2}
USUAL: dict[str, dict[str, Any]] = {  # what most models cannot do without
    "topology": {"nodes": 6, "rows": 2, "columns": 3, "levels": [LEVEL, LEVEL]}
    | {"mean_ms": 1.0, "transit": LEVEL, "stub": LEVEL, "top": {"nodes": 1}},
    "workload": {
        "senders": 2,
        "duration_ms": 5.0,
        "messages": 5,
        "send": [{"node": 0, "at_ms": 1.0}],
    },
    "groups": {"groups": 2, "size": 3, "members": {"a": [0, 1, 2], "b": [2, 3, 4, 5]}},
    "fault": {
        "rate": 0.1,
        "late_ms": 1.0,
        "factor": 2.0,
        "nodes": [0, 1],
        "node": 0,
        "for_ms": 5.0,
    },
}
DEEPER = st.sampled_from([True, True, True, False])
NAMES = st.sampled_from(["a", "small", "g0", "deliver", "flush"])


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Small values of a type; None means that the key is left out."""
    origin, args = get_origin(kind), get_args(kind)
    if kind in SMALL:
        return SMALL[kind]
    if kind is str:
        return NAMES
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values, args))
    if origin is tuple and args[-1] is not Ellipsis:
        return st.tuples(*map(values, args)).map(list)
    if origin in (tuple, list):
        return st.lists(values(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(NAMES, values(args[1]), max_size=3)
    return st.none() if kind is type(None) else table(get_type_hints(kind))


@st.composite
def table(draw: st.DrawFn, /, keys: dict[str, Any], **always: Any) -> dict[str, Any]:
    """A table with one or two of these keys; with more, one of them would nearly always be wrong."""
    rest = sorted(keys.keys() - always.keys())
    chosen = draw(st.lists(st.sampled_from(rest), max_size=2, unique=True)) if rest else []
    found = {name: draw(values(keys[name])) for name in chosen}
    return always | {name: value for name, value in found.items() if value is not None}


def named(where: str, names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """A table that names one of a registry; sizes that most models need are always there."""

    def of(name: str) -> st.SearchStrategy[dict[str, Any]]:
        keys = key_types(where, {naming_key(where): name})
        usual = {key: value for key, value in USUAL.get(where, {}).items() if key in keys}
        drawn = table(keys, **{naming_key(where): name})
        return drawn.map(lambda table: usual | table)

    return st.sampled_from(names).flatmap(of)


def documents() -> st.SearchStrategy[dict[str, Any]]:
    """What a file may say."""
    registry = {where: list(found) for where, found in _REGISTRIES.items()}
    return st.fixed_dictionaries(
        {
            "name": st.just("drawn"),
            "protocol": named("protocol", list(PROTOCOLS)),
            "topology": named("topology", registry["topology"]),
            "workload": named("workload", registry["workload"]),
        },
        optional={
            "seed": st.integers(0, 99),
            "engine": st.sampled_from(ENGINES),
            "links": table(key_types("links", {})),
            "transport": table(key_types("transport", {})),
            "overlay": named("overlay", registry["overlay"]),
            "groups": named("groups", registry["groups"]),
            "channel": st.sampled_from(["raw", "reliable", {"model": "reliable"}]),
            "fault": st.lists(named("fault", registry["fault"]), max_size=2),
        },
    )


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A file in which one thing is replaced, left out or added."""
    document = copy.deepcopy(draw(documents()))
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and place[key] and draw(DEEPER):
            place = place[key]
            continue
        how = draw(st.sampled_from(["replace", "replace", "leave out", "add"]))
        if how == "replace":
            place[key] = draw(st.sampled_from(NASTY))
        elif how == "leave out":
            del place[key]
        elif isinstance(place, dict):
            place[draw(NAMES)] = draw(st.sampled_from(NASTY))
        break
    return document


def attempt(document: dict[str, Any]) -> str:
    """Whether a file is "refused", or else what became of it; anything but a UserError is raised."""
    file = Path("drawn.toml")
    try:
        tomli_w.dumps(document)
        (experiment,) = parse(document, file)
        scenario = Scenario.of(experiment)
        size = Estimate.of(scenario)
        if size.deliveries > MOST_DELIVERIES:
            return "large"
        if experiment.engine != "simulate":
            return "valid"
        simulation = Simulation(scenario, _Nowhere())
        simulation.run(_stop_soon)
        simulation.summary()
    except UserError:
        return "refused"
    return "run"


class _Nowhere(Log):
    """Nothing is written down."""


def _stop_soon(stage: str, done: int, of: int) -> None:
    raise RunEnded


def _too_long(*_: object) -> None:
    raise TimeoutError(f"no answer in {PATIENCE_S} s")


def try_files(count: int) -> tuple[Counter[str], dict[str, str]]:
    """Draw so many files, half of them broken: how many came to what, and a file for each traceback."""
    came: Counter[str] = Counter()
    tracebacks: dict[str, str] = {}

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(document=st.one_of(documents(), broken()))
    def try_one(document: dict[str, Any]) -> None:
        signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
        try:
            came[attempt(document)] += 1
        except Exception as error:  # that is what is looked for
            *_, (frame, line) = traceback.walk_tb(error.__traceback__)
            where = f"{type(error).__name__}: {error} ({frame.f_code.co_filename}, line {line})"
            tracebacks.setdefault(where, tomli_w.dumps(document))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    usual = signal.signal(signal.SIGPROF, _too_long)
    try:
        try_one()
    finally:
        signal.signal(signal.SIGPROF, usual)
    return came, tracebacks
