"""Members of one group, of which the first four have names."""

from testbed.protocols.groups.detector import Timing
from testbed.protocols.groups.group import Group
from testbed.protocols.groups.view import FIRST, Member, View, ViewId
from tests.world import MS

A, B, C, D = range(4)
TIMING = Timing(heartbeat=MS, patience=5 * MS, grace=20 * MS, forget=500 * MS, ack=None)


def members_of(*processes: int) -> tuple[Member, ...]:
    """Members that answer for themselves."""
    return tuple(Member(p, 0, frozenset({p}), p) for p in processes)


def view_of(*processes: int, number: int = FIRST, absent: tuple[Member, ...] = ()) -> View:
    """A view with the first of these as coordinator."""
    return View(ViewId(number, processes[0]), members_of(*processes), absent)


def group_at(me: int, view: View, timing: Timing = TIMING) -> Group:
    """A process's part in a group, in a view; the candidates are those of the view."""
    return Group(0, members_of(me)[0], timing, view.processes, view=view)
