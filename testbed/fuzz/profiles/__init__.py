"""What is drawn for which protocols, one profile a file, each with the limits that it respects.

All that is drawn is within what a correct protocol promises, so that every violation is a mistake.
"""

from typing import Any

from testbed.fuzz.elements import Document
from testbed.fuzz.profiles.flat import FlatProfile
from testbed.fuzz.profiles.grouped import GroupedProfile
from testbed.fuzz.profiles.members import MembersProfile
from testbed.fuzz.profiles.optimistic import OptimisticProfile
from testbed.fuzz.profiles.plain import Origin, Profile
from testbed.protocols import Protocol
from testbed.protocols.daisy import Daisy
from testbed.protocols.flat import Flat

__all__ = ["Origin", "Profile", "draw", "profile_of"]


def profile_of(protocol: type[Protocol]) -> Profile:
    """The profile of a protocol."""
    if issubclass(protocol, Daisy):
        return MembersProfile(protocol)
    if issubclass(protocol, Flat):
        return FlatProfile(protocol)
    if protocol.optimistic:
        return OptimisticProfile(protocol)
    return (GroupedProfile if protocol.needs_groups else Profile)(protocol)


def draw(protocol: type[Protocol], seed: int, **how: Any) -> Document:
    """The experiment of a seed, see ``Profile.draw``."""
    return profile_of(protocol).draw(Origin(seed, **how))
