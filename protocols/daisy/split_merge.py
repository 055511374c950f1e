"""How a local group is split in two, and which groups are merged."""

from collections.abc import Mapping

from ..groups.agreed import Reshape
from ..groups.view import Member, View
from .tree import LEVEL

Talk = Mapping[tuple[int, int], int]


def split(local: View, above: View, talk: Talk) -> Reshape:
    """Make half of the members a group with a number that the group above does not know."""
    go = parting(local.members, talk)
    used = {m.of for m in (*above.members, *above.absent)}
    free = (LEVEL // 2 + (go[0].process + i) % (LEVEL // 2) for i in range(LEVEL // 2))
    return Reshape(next(number for number in free if number not in used), go)


def parting(members: tuple[Member, ...], talk: Talk) -> tuple[Member, ...]:
    """The half that is split off: those with the fewest messages to and from the rest."""
    stay, go = [members[0]], list(members[1:])

    def heard(member: Member) -> int:
        p = member.process
        return sum(talk.get((p, s.process), 0) + talk.get((s.process, p), 0) for s in stay)

    while len(stay) < len(members) - len(members) // 2:
        best = max(go, key=heard)
        go.remove(best)
        stay.append(best)
    return tuple(go)


def merge(number: int, local: View, above: View, most: int) -> Reshape | None:
    """Make all members of the smallest group join the next one, one group at a time."""
    beside = sorted((len(m.roster), m.of, m) for m in above.members if m.of < LEVEL)
    if len(beside) < 2 or beside[0][1] != number:
        return None
    other = beside[1][2]
    if len(local.members) + len(other.roster) > most:
        return None
    contacts = (other.process, *sorted(other.roster - {other.process}))
    return Reshape(other.of, local.members, contacts)
