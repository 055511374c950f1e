"""The registries, for tests that call an entry with the parameters of that one model."""

from typing import Any

from testbed import topologies

MODELS: dict[str, Any] = {**topologies.MODELS}
OVERLAYS: dict[str, Any] = {**topologies.OVERLAYS}
