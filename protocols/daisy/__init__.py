"""The hierarchical daisy (Baldoni, Friedman & van Renesse 1996), on the group layer in ``groups``.

``daisy`` begins with a table of the paper's sections and their modules here.
"""

from .daisy import Daisy

__all__ = ["Daisy"]
