"""Changes of what goes wrong: faults begin, end or move, strike others, or come in another shape."""

from collections.abc import Callable
from typing import Any

from testbed.fuzz.elements import Document, Table, rounded
from testbed.fuzz.mutants.scope import Scope, subjects
from testbed.fuzz.mutants.talk import said
from testbed.fuzz.profiles.scenes import LOSS_MOST

STRIKES = ("pause", "partition", "partition", "leave", "leave", "crash")
TIGHT = (0.1, 0.5, 1.0)  # heartbeats
LATE = (0.1, 0.3, 0.5)  # how many packets


def strike(scope: Scope) -> Document:
    """Let something happen to a process, mostly to one to which something happens at that time."""
    rng = scope.rng
    if scope.moments and rng.random() < 0.5:
        moment = scope.moment()
        node = moment.node if rng.random() < 0.7 else scope.any()
        at = scope.near(moment.at_ms)
    else:
        node, at = scope.process(), scope.time()
    fault = {**_shaped(rng.choice(STRIKES), node), "at_ms": at}
    if fault["kind"] not in ("crash", "leave") or rng.random() < 0.7:
        fault["for_ms"] = scope.absence()
    return _with(scope, fault)


def echo(scope: Scope) -> Document:
    """Let the same, or something else, happen to another process as a fault begins or ends."""
    rng, faults = scope.rng, [fault for fault in scope.timed if subjects(fault)]
    if not faults:
        return strike(scope)
    fault = rng.choice(faults)
    also = _shaped(fault["kind"] if rng.random() < 0.6 else rng.choice(STRIKES), scope.any())
    begins, ends = scope.span(fault)
    also["at_ms"] = begins if rng.random() < 0.2 else scope.near(rng.choice([begins, begins, ends]))
    if also["kind"] in ("pause", "partition") or ("for_ms" in fault and rng.random() < 0.8):
        alike = "for_ms" in fault and rng.random() < 0.4
        also["for_ms"] = fault["for_ms"] if alike else scope.absence()
    return _with(scope, also)


def repeat(scope: Scope) -> Document:
    """Let a fault happen again, as it ends or a while later."""
    rng, s = scope.rng, scope.document["protocol"]
    if not scope.timed:
        return strike(scope)
    fault = rng.choice(scope.timed)
    later = rng.choice([0, 0, s["heartbeat_ms"], s["patience_ms"]])
    return _with(scope, {**fault, "at_ms": scope.near(scope.span(fault)[1] + later)})


def move(scope: Scope) -> Document:
    """Let a fault begin or end a little earlier or later, or about when something else happens."""
    rng, s = scope.rng, scope.document["protocol"]

    def moved(at_ms: float) -> float:
        if rng.random() < 0.4:
            return scope.time()
        far = rng.choice([s["heartbeat_ms"], s["patience_ms"], s["grace_ms"]])
        return scope.near(at_ms + rng.choice([0, 0, 0, 0, 1, -1]) * far)

    def change(fault: Table) -> Table:
        begins, ends = scope.span(fault)
        if "for_ms" in fault and rng.random() < 0.5:
            return {**fault, "for_ms": rounded(max(0.1, moved(ends) - begins))}
        return {**fault, "at_ms": moved(begins)}

    return _one(scope, change)


def stretch(scope: Scope) -> Document:
    """Let a fault last for another time, or for good."""

    def change(fault: Table) -> Table:
        if fault["kind"] in ("crash", "leave") and "for_ms" in fault and scope.rng.random() < 0.3:
            return {key: value for key, value in fault.items() if key != "for_ms"}
        return {**fault, "for_ms": scope.absence()}

    return _one(scope, change)


def reshape(scope: Scope) -> Document:
    """Let a process stand still instead of leaving, be cut off instead of standing still, and so on."""

    def change(fault: Table) -> Table:
        if not (struck := subjects(fault)):
            return fault
        shaped = _shaped(scope.rng.choice(sorted({*STRIKES} - {fault["kind"]})), struck[0])
        lasts = fault["for_ms"] if "for_ms" in fault else scope.absence()
        return {**shaped, "at_ms": fault["at_ms"], "for_ms": lasts}

    return _one(scope, change)


def divert(scope: Scope) -> Document:
    """Let a fault strike another process, or, if it is a cut, one more or one fewer."""

    def change(fault: Table) -> Table:
        node = scope.any()
        if "nodes" not in fault:
            return {**fault, "node": node} if subjects(fault) else fault
        alone = scope.rng.random() < 0.5
        return {
            **fault,
            "nodes": [node] if alone else sorted({*subjects(fault)} ^ {node}) or [node],
        }

    return _one(scope, change)


def squeeze(scope: Scope) -> Document:
    """Let about half of all faults begin or end, and half of all messages be sent, at one time."""
    rng, at = scope.rng, scope.time()

    def soon() -> float:
        return rounded(max(0.0, at + rng.uniform(-0.5, 0.5) * rng.choice(TIGHT) * scope.beat))

    def squeezed(fault: Table) -> Table:
        if "at_ms" not in fault or rng.random() < 0.5:
            return fault
        if "for_ms" in fault and rng.random() < 0.5:
            return {**fault, "at_ms": rounded(max(0.0, soon() - fault["for_ms"]))}
        return {**fault, "at_ms": soon()}

    send: list[Any] = [
        {**line, "at_ms": soon()} if "at_ms" in line and rng.random() < 0.5 else line
        for line in scope.document["workload"]["send"]
    ]
    return {**said(scope.document, send), "fault": [*map(squeezed, scope.document["fault"])]}


def drop(scope: Scope) -> Document:
    """Leave a fault out."""
    faults = scope.document["fault"]
    gone = scope.rng.randrange(len(faults) + 1)
    return {**scope.document, "fault": [f for number, f in enumerate(faults) if number != gone]}


def blur(scope: Scope) -> Document:
    """Let packets be lost, or late by a heartbeat at most; or no longer."""
    rng, faults = scope.rng, scope.document["fault"]
    rest = [fault for fault in faults if fault["kind"] not in ("loss", "reordering")]
    if len(rest) < len(faults) and rng.random() < 0.5:
        return {**scope.document, "fault": rest}
    late = rounded(rng.uniform(0.3, 1) * scope.beat)
    return _with(
        scope,
        rng.choice(
            [
                {"kind": "reordering", "rate": rng.choice(LATE), "late_ms": late},
                {"kind": "loss", "rate": rounded(rng.uniform(0.2, 1) * LOSS_MOST)},
            ]
        ),
    )


def _shaped(kind: str, node: int) -> Table:
    return {"kind": kind, "nodes": [node]} if kind == "partition" else {"kind": kind, "node": node}


def _with(scope: Scope, fault: Table) -> Document:
    return {**scope.document, "fault": [*scope.document["fault"], fault]}


def _one(scope: Scope, change: Callable[[Table], Table]) -> Document:
    """Change one of the faults that begin at a time; if there is none, let one happen."""
    faults = scope.document["fault"]
    numbers = [number for number, fault in enumerate(faults) if "at_ms" in fault]
    if not numbers:
        return strike(scope)
    n = scope.rng.choice(numbers)
    return {**scope.document, "fault": [*faults[:n], change(faults[n]), *faults[n + 1 :]]}
