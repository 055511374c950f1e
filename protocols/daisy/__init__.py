"""The hierarchical daisy (Baldoni, Friedman & van Renesse 1996).

The group layer: ``view``, ``messages``, ``view_change`` (State and Install), ``membership``,
``agreement``, ``group``; ``casting`` (causal broadcast within a view), ``matrices`` or ``star`` in
its place. Above: ``tree`` (the first groups), ``relay`` (between them), ``split_merge``, ``daisy``; for
early relaying ``early_relay``, ``server_group``, ``stamped_cast``.
"""

from .daisy import Daisy

__all__ = ["Daisy"]
