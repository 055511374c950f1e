"""The hierarchical daisy: the group layer, and the relaying between groups."""

from protocols.daisy.daisy import Daisy

__all__ = ["Daisy"]
