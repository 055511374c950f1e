"""The hierarchical daisy: the group layer, and the relaying between groups."""

from .daisy import Daisy

__all__ = ["Daisy"]
