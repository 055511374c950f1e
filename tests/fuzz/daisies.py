"""Experiments with daisies."""

import tomllib
from pathlib import Path
from typing import Any

MENDED = Path(__file__).parent / "mended"


def mended(name: str) -> dict[str, Any]:
    """An experiment that fuzzing has found, and in which nothing goes wrong any more."""
    return tomllib.loads((MENDED / f"{name}.toml").read_text())


def daisies(send: list[Any], faults: list[Any], nodes: int = 6, **settings: Any) -> dict[str, Any]:
    """An experiment with members, on a complete graph."""
    chosen = {"heartbeat_ms": 20.0, "patience_ms": 70.0, "grace_ms": 210.0, "ack_ms": 1.0}
    chosen |= settings
    return {
        "name": "members",
        "seed": 1,
        "protocol": {"name": "daisy", **chosen},
        "topology": {"model": "pure-random", "nodes": nodes, "edge_probability": 1.0},
        "links": {"delay_ms": 1.0},
        "workload": {
            "model": "script",
            "send": send,
            "settle_ms": 3 * chosen["grace_ms"] + 40 * chosen["heartbeat_ms"],
        },
        "fault": faults,
    }
