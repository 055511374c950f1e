"""Parts of a run directory that Spark's processes write: the columns of tables, and whole files.

They are here by themselves because each of these processes would otherwise import all of the testbed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COLUMNS = {
    "events": "node number at event source seq payload control destinations for_source for_seq",
    "messages": "source seq sent_at payload control destinations delivered delay_mean delay_max "
    "holders held_max copies fragments bytes hops wire_bytes",
    "deliveries": "node source seq at number held_number delay held_at held cause_source cause_seq",
    "delays": "node source seq delay propagation serialisation queueing deviation retransmission "
    "relaying reception waiting held unattributed hops relays via copy",
    "sent": "at sender receivers source seq kind fragment bytes control",
    "hops": "tail head queued started arrived error bytes sender receiver copy source seq kind "
    "fragment",
    "carried": "at sender receiver copy source seq",
    "links": "tail head delay_ns bandwidth_bps packets bytes busy waited load load_bytes queue_max "
    "queue_bytes_max",
    "nodes": "node multicasts deliveries delay_mean delay_max held queue_mean queue_max",
    "timeline": "at width held_mean held_max packets_mean packets_max multicasts deliveries",
}


@contextmanager
def whole(file: Path) -> Iterator[Path]:
    """A path to write to; what was written becomes ``file``, which is there whole or not at all."""
    part = file.with_name(f".{file.name}.part")
    try:
        yield part
        os.replace(part, file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
