"""lpbcast's membership: every process knows a few others, and gossip keeps that knowledge fresh.

Eugster, Guerraoui, Handurukande, Kermarrec & Kouznetsov, "Lightweight Probabilistic Broadcast", 2003.

State: ``view``, the processes that this one gossips to, at most ``size``; ``subs``, processes whose
membership it passes on; ``unsubs``, processes that have left, each with the age of that news in
rounds. A gossip message carries the last two, with its sender among the subs. Its receiver removes
from its view the processes that have left and adds the new ones; if the view is then too large,
random victims move to the subs, so that they stay known elsewhere.

To join is to know one member and to gossip to it, round by round, until others know the newcomer.
To leave is to say so for some rounds and then to be silent. News of a departure has a lifetime,
during which no process believes that the departed one is a member, should it come back.
"""

import random
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..base import Place


class News(NamedTuple):
    """What a gossip message says about the membership."""

    subs: tuple[int, ...] = ()
    unsubs: tuple[tuple[int, int], ...] = ()  # process, age of the news in rounds


NO_NEWS = News()


class FullView:
    """Every process is a member and known to all; one that leaves still forwards gossip."""

    member = True

    def __init__(self, place: Place) -> None:
        self.rng = place.rng
        self.others = place.others
        self.active = True

    def targets(self, count: int) -> tuple[int, ...]:
        """Other processes, drawn at random."""
        return tuple(self.rng.sample(self.others, min(count, len(self.others))))

    def news(self) -> News:
        """The news for the next gossip message: none."""
        return NO_NEWS

    def learn(self, news: News) -> None:
        """Take news in; there is none."""

    def tick(self) -> None:
        """End a round."""

    def meet(self, members: Iterable[int]) -> None:
        """Learn through whom to join: everybody is known."""

    def join(self) -> None:
        """The process wants to multicast again."""
        self.active = True

    def leave(self) -> None:
        """The process does not want to multicast any more."""
        self.active = False


class PartialView:
    """One process's view of the membership; ``size`` bounds the view, the subs and the unsubs."""

    def __init__(
        self, place: Place, members: Collection[int], size: int, farewell: int, lifetime: int
    ) -> None:
        """Those ``members`` are in it from the beginning and know some others."""
        self.me = place.me
        self.rng: random.Random = place.rng
        self.size = size
        self.farewell = farewell
        self.lifetime = lifetime
        self.meet(sorted(members))
        self.member = self.me in members
        self.view: list[int] = []
        self.subs: list[int] = []
        self.unsubs: dict[int, int] = {}
        if self.member:
            self.view = self._some(self.first, size)

    @property
    def active(self) -> bool:
        """Whether the process is a member and means to stay one."""
        return self.member and self.me not in self.unsubs

    def targets(self, count: int) -> tuple[int, ...]:
        """Processes of the view, drawn at random."""
        return tuple(self._some(self.view, count))

    def news(self) -> News:
        """The subs with this process itself, unless it is leaving, and the unsubs, a round older."""
        mine = () if self.me in self.unsubs else (self.me,)
        return News((*self.subs, *mine), tuple((p, age + 1) for p, age in self.unsubs.items()))

    def learn(self, news: News) -> None:
        """Phases 1 and 2 of the reception of a gossip message."""
        for process, age in news.unsubs:
            if process != self.me and age < self.lifetime:
                self.unsubs[process] = max(age, self.unsubs.get(process, 0))
        self.view = [p for p in self.view if p not in self.unsubs]
        self.subs = [p for p in self.subs if p not in self.unsubs]
        for process in news.subs:
            if process not in (self.me, *self.view) and process not in self.unsubs:
                self.view.append(process)
                self._pass_on(process)
        while len(self.view) > self.size:
            self._pass_on(self.view.pop(self.rng.randrange(len(self.view))))
        self.subs = self._some(self.subs, self.size)
        self._trim_unsubs()

    def tick(self) -> None:
        """End a round: news of departures ages, and the process's own farewell may end."""
        self.unsubs = {p: age + 1 for p, age in self.unsubs.items() if age + 1 < self.lifetime}
        if self.unsubs.get(self.me, 0) >= self.farewell:
            self.member = False
            self.view, self.subs = [], []

    def meet(self, members: Iterable[int]) -> None:
        """Learn through whom to join."""
        self.first = tuple(p for p in members if p != self.me)

    def join(self) -> None:
        """Become a member through one of those that are known to be members."""
        self.unsubs.pop(self.me, None)
        if not self.member:
            self.member = True
            self.view = self._some(self.first, 1)

    def leave(self) -> None:
        """Start to say that the process leaves."""
        if self.member:
            self.unsubs.setdefault(self.me, 0)

    def _pass_on(self, process: int) -> None:
        if process not in self.subs:
            self.subs.append(process)

    def _trim_unsubs(self) -> None:
        others = [p for p in self.unsubs if p != self.me]
        for process in self._some(others, len(others) - self.size):
            del self.unsubs[process]

    def _some(self, processes: tuple[int, ...] | list[int], count: int) -> list[int]:
        """At most ``count`` of the processes, drawn at random, in their order."""
        if len(processes) <= count:
            return list(processes)
        return [processes[i] for i in sorted(self.rng.sample(range(len(processes)), max(count, 0)))]
