"""The states of one process in one group, as a table; whatever is not in it is a mistake.

A process *seeks* a group until it is admitted. As a *member* it broadcasts. A member that has promised
to accept a greater view is *flushing*; the one that proposes it, the coordinator, is *proposing*. The
server may ask for *silence* before the group is split or merged. Who has left is *out*.
"""

from __future__ import annotations

from ..base import Note, Transition

SEEKING, MEMBER, SILENT = "seeking", "member", "silent"
FLUSHING, PROPOSING, OUT = "flushing", "proposing", "out"

TRANSITIONS = (
    # admission
    Transition(SEEKING, "flush", SEEKING),  # a joiner says what it has
    Transition(SEEKING, "found", MEMBER),  # nobody answered: it starts the group again
    Transition(SEEKING, "go-on", FLUSHING),  # nobody answered: it goes on in its old view
    # silence
    Transition(MEMBER, "silence", SILENT),
    Transition(SILENT, "resume", MEMBER),
    # view change, for a member and for the coordinator
    *(
        Transition(state, event, next)
        for state in (MEMBER, SILENT, FLUSHING, PROPOSING)
        for event, next in (("flush", FLUSHING), ("propose", PROPOSING), ("expel", SEEKING))
    ),
    Transition(MEMBER, "hear", FLUSHING),  # a member waits for a greater view
    Transition(SILENT, "hear", FLUSHING),
    Transition(PROPOSING, "hear", FLUSHING),
    Transition(PROPOSING, "defer", FLUSHING),  # another should propose
    *(
        Transition(state, event, next)
        for state in (SEEKING, FLUSHING, PROPOSING)
        for event, next in (("install", MEMBER), ("move", SEEKING))
    ),
    *(Transition(state, "split", MEMBER) for state in (SEEKING, FLUSHING)),  # its server stays
    *(Transition(state, "left", OUT) for state in (MEMBER, SILENT, FLUSHING, PROPOSING)),
)
# A member that has just been expelled by a view of the other side of a partition answers a proposal of
# its old server, which is about to split or merge the group. The server reshapes a group only when the
# group above is calm, which it is not so soon after that; but nothing rules it out.
# A silent member that wants to leave is asked for its part in a view change within a heartbeat, and
# leaves when that is over. To leave while silent it must hear, within that heartbeat, of a view of the
# other side of a partition; or be alone in a group that is about to merge, which is beyond the limits.
UNLIKELY = {(SEEKING, "move"), (SEEKING, "split"), (SILENT, "left")}
EXPECTED = tuple(t for t in TRANSITIONS if (t.state, t.event) not in UNLIKELY)
TABLE = {(t.state, t.event): t for t in TRANSITIONS}


class Machine:
    """The state of one process in one group."""

    def __init__(self, state: str) -> None:
        self.state = state

    def go(self, event: str, **facts: int) -> Note:
        """Go to the next state by the table; what the log should say."""
        transition = TABLE[self.state, event]
        self.state = transition.next
        return transition.note(**facts)


def drawing() -> str:
    """The table as a Mermaid diagram, which docs/groups.md shows."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for state, event, next in TRANSITIONS:
        arrows.setdefault((state, next), []).append(event)
    lines = [f"    {a} --> {b}: {', '.join(events)}" for (a, b), events in arrows.items()]
    start = [f"    [*] --> {state}" for state in (SEEKING, MEMBER)]
    return "\n".join(["stateDiagram-v2", *start, *lines, f"    {OUT} --> [*]"])
