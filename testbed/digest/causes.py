"""What a message that was held back waited for last.

A log says which message was missing when another was held back, but several may be, and the last to
arrive is the cause. It follows from the deliveries: when a message arrives and is delivered, all that
waited for nothing else is delivered at once, in the same moment. So the cause is the nearest delivery
before, at the same process and time, of a message that was not held back itself. There is none if
something else let the message go, such as a timer or a message of the protocol's own.
"""

import numpy as np
import pyarrow as pa

from testbed.digest.arrays import integers, latest, runs_of, with_columns


def with_causes(delivered: pa.Table) -> pa.Table:
    """Deliveries, sorted by node and number, with the message that each was held back for last."""
    node, at = integers(delivered, "node"), integers(delivered, "at")
    held = np.asarray(delivered["held_at"].is_valid())
    arrived = ~held & (node != integers(delivered, "source"))
    cause = latest(arrived, runs_of(node)) if len(delivered) else np.zeros(0, np.int64)
    known = held & (cause >= 0) & (at == at[cause])
    named = delivered.select(["source", "seq"]).take(pa.array(cause, mask=~known))
    return with_columns(delivered, cause_source=named["source"], cause_seq=named["seq"])
