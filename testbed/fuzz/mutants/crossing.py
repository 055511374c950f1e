"""Changes of the system, its seed, size and groups, and all that is taken from another scene."""

from typing import Any

from testbed.fuzz.elements import Document, rounded
from testbed.fuzz.mutants.scope import Scope
from testbed.fuzz.mutants.talk import renumbered, said

SEEDS = 2**16
VARIANT = {"safe", "early", "inside", "resilience"}
SHAPE = {"group_size", "levels", "split_above", "merge_below", "max_levels"}
TIMES = {"heartbeat_ms", "patience_ms", "grace_ms", "forget_ms", "ack_ms"}
VALUES: dict[str, tuple[Any, ...]] = {
    "group_size": (1, 2, 2, 3, 4),
    "levels": (1, 2, 2, 3, 4),
    "split_above": (None, 2, 3, 4),
    "merge_below": (0, 2, 3, 4),
    "max_levels": (0, 2, 3, 4),
    "ack_ms": (0.0, 1.0, 5.0),
}
LEAST_NODES, MOST_NODES = 2, 6


def reseed(scope: Scope) -> Document:
    """Draw again how heartbeats meet, and what else follows from the seed."""
    return {**scope.document, "seed": scope.rng.randrange(1, SEEDS)}


def regroup(scope: Scope) -> Document:
    """Larger or smaller groups, more or fewer levels, or groups that are split and merged, or not."""
    key = scope.rng.choice([*VALUES])
    settings = scope.document["protocol"] | {key: scope.rng.choice(VALUES[key])}
    if settings.get("split_above") is None:
        settings.pop("max_levels", None)
        settings.pop("split_above", None)
    return {**scope.document, "protocol": settings}


def resize(scope: Scope) -> Document:
    """One process more, or one fewer."""
    document, nodes = scope.document, scope.nodes
    if "nodes" not in document["topology"]:
        return document
    grows = nodes < MOST_NODES and (nodes <= LEAST_NODES or scope.rng.random() < 0.6)
    fewer = document if grows else _among(document, nodes - 1)
    return {**fewer, "topology": {**document["topology"], "nodes": nodes + (1 if grows else -1)}}


def shape_of(scope: Scope, other: Document) -> Document:
    """Groups as in another scene."""
    return _settings_of(scope.document, other, SHAPE | VARIANT)


def times_of(scope: Scope, other: Document) -> Document:
    """Heartbeats and patience as in another scene; all happens after as many heartbeats as before."""
    factor = other["protocol"]["heartbeat_ms"] / scope.beat
    return _settings_of(_scaled(scope.document, factor), other, TIMES)


def links_of(scope: Scope, other: Document) -> Document:
    """The network of another scene, with as many processes as before."""
    topology = {**other["topology"], "nodes": scope.nodes}
    fits = "nodes" in other["topology"]
    return {**scope.document, "links": other["links"]} | ({"topology": topology} if fits else {})


def faults_of(scope: Scope, other: Document) -> Document:
    """The faults of another scene, instead of its own or beside them."""
    own = scope.document["fault"] if scope.rng.random() < 0.4 else []
    return {**scope.document, "fault": [*own, *_fitted(scope, other)["fault"]]}


def messages_of(scope: Scope, other: Document) -> Document:
    """The messages of another scene, instead of its own or beside them."""
    own = scope.document["workload"]["send"] if scope.rng.random() < 0.6 else []
    send = renumbered(_fitted(scope, other)["workload"]["send"], len(own))
    return said(scope.document, [*own, *send])


def _settings_of(document: Document, other: Document, keys: set[str]) -> Document:
    kept = {key: value for key, value in document["protocol"].items() if key not in keys}
    taken = {key: value for key, value in other["protocol"].items() if key in keys}
    return {**document, "protocol": kept | taken}


def _fitted(scope: Scope, other: Document) -> Document:
    """Another scene with the processes and heartbeats of this one."""
    return _among(_scaled(other, scope.beat / other["protocol"]["heartbeat_ms"]), scope.nodes)


def _scaled(document: Document, factor: float) -> Document:
    def scaled(table: Any) -> Any:
        times = {"at_ms", "for_ms", "late_ms"} & table.keys()
        return table | {key: rounded(table[key] * factor) for key in times}

    send = [scaled(line) for line in document["workload"]["send"]]
    return {**said(document, send), "fault": [scaled(fault) for fault in document["fault"]]}


def _among(document: Document, nodes: int) -> Document:
    """With processes of a system that may be smaller; faults of links are left out."""

    def moved(table: Any) -> Any:
        one = {"node", "sender", "receiver"} & table.keys()
        some = {"to", "nodes"} & table.keys()
        changed = {key: table[key] % nodes for key in one if isinstance(table[key], int)}
        lists = {key: table[key] for key in some if isinstance(table[key], list)}
        return table | changed | {k: sorted({n % nodes for n in v}) for k, v in lists.items()}

    send = [moved(line) for line in document["workload"]["send"]]
    faults = [moved(fault) for fault in document["fault"] if "link" not in fault]
    return {**said(document, send), "fault": faults}
