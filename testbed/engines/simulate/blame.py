"""What a protocol did wrong, from the exception that it led to."""

import traceback

from testbed.node import Node
from testbed.protocols import NS_PER_MS, Protocol


def blame(error: Exception, protocol: type[Protocol], now: int) -> str:
    """One sentence: which process, when, in which line of which file."""
    frames = list(traceback.walk_tb(error.__traceback__))
    nodes = [node for frame, _ in frames if isinstance(node := frame.f_locals.get("self"), Node)]
    where = f"in process {nodes[-1].id} at {now / NS_PER_MS:.3f} ms" if nodes else "at its start"
    lines = [
        f" ({frame.f_code.co_filename}, line {line})"
        for frame, line in frames
        if isinstance(frame.f_locals.get("self"), Protocol)
    ]
    what = f"{type(error).__name__}: {error}"
    return f"{protocol.name} failed {where}: {what}{lines[-1] if lines else ''}"
