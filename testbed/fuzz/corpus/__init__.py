"""Scenes: small experiments in which the daisy once went wrong, and does not any more.

Each file is a recipe for a mistake: few processes, few messages, and faults whose times meet what the
protocol does; its comment says what went wrong. Mistakes resemble each other: somebody is back before
others know that it was gone, or stands still while a group is merged. So what is near a scene, or
between two, goes wrong far more often than what is drawn from nothing, and takes little time to run.
One scene is there for what it reaches, which nothing else does often. And some are beyond what the
daisy promises now: it survives these, though not all that is like them.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from testbed.fuzz.elements import Document
from testbed.protocols.daisy import Daisy

TIMING = ("heartbeat_ms", "patience_ms", "grace_ms", "forget_ms", "ack_ms")


@cache
def scenes() -> dict[str, Document]:
    """The scenes by name, each with its times written out, also where they are defaults."""
    files = sorted(Path(__file__).parent.glob("*.toml"))
    return {file.stem: _explicit(tomllib.loads(file.read_text())) for file in files}


def _explicit(document: Document) -> Document:
    defaults: Any = Daisy.Settings()
    settings = {key: getattr(defaults, key) for key in TIMING} | document["protocol"]
    faults = [{"at_ms": 0.0, **fault} if _begins(fault) else fault for fault in document["fault"]]
    return {**document, "protocol": settings, "fault": faults}


def _begins(fault: dict[str, Any]) -> bool:
    """Whether a fault begins at a time, and not by a trigger or for good."""
    return "when" not in fault and not {"node", "nodes", "for_ms"}.isdisjoint(fault)
