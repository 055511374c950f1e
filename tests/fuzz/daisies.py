"""Experiments with daisies."""

from typing import Any


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
