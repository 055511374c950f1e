"""Reports: the heartbeat, which also says what was delivered and released, and acknowledgements.

At every heartbeat members report to the leader, and the leader to all; a delivery is reported sooner to
those who wait for it. A report shows what its source lacks, and in which view it is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ..base import Count, Effects, Send, SetTimer
from .messages import Report
from .passed import bypassing, passed

if TYPE_CHECKING:
    from .group import Group


class Reporting:
    """What one member reports to others in a group, and what it does about their reports."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.above: tuple[int, ...] = ()  # members of the group above, as the server knows them
        self.above_since = 0  # since when there are any
        self.ack_due: set[int] | None = None  # who waits for a report, if it will be sent
        self.ack_group = group.number  # for which group the timer is set, since that may change

    def acknowledge_soon(self, peers: Collection[int]) -> Effects:
        """Report to those who wait for it, a little later, what was delivered."""
        group = self.group
        if group.timing.ack is None or group.casting is None:
            return
        peers = group.casting.waiting_for(peers)
        if self.ack_due is not None and self.ack_group == group.number:
            self.ack_due.update(peers)
        elif peers:
            self.ack_due, self.ack_group = set(peers), group.number
            yield SetTimer(("ack", group.number), group.timing.ack)

    def acknowledge(self, now: int) -> Effects:
        """Report what was delivered."""
        waiting, self.ack_due = self.ack_due, None
        if waiting and self.group.view is not None and not (self.group.seeking or self.group.out):
            yield from bypassing(self.group, self.report(now, waiting), now)

    def report(self, now: int, waiting: Collection[int] | None = None) -> Effects:
        """Report to the leader, or as leader to all; or only to those who wait for it."""
        group, detector = self.group, self.group.detector
        assert group.view is not None
        assert group.casting is not None
        leads, serves = detector.leads(now), group.is_server
        outside = group.places.unknown().union(detector.outside_since) if serves else frozenset()
        epochs = group.agreed.without(group.epochs.pairs)
        for status in group.casting.reports(detector.hubs(now), leads, waiting):
            report = Report(
                group.me.process,
                0,
                group=group.number,
                view=group.view.id,
                promised=group.change.promised.number,
                delivered=status.delivered,
                released=status.released,
                leads=leads,
                everywhere=status.everywhere,
                above=self.above if serves else (),
                outside=outside,
                epochs=epochs,
            )
            yield Send(status.peers, report)
            yield Count("reports", len(status.peers))

    def learn_above(self, members: tuple[int, ...], now: int) -> None:
        """Note who is in the group above, if that is known."""
        if members and not self.above:
            self.above_since = now
        self.above = members or self.above

    def say_view(self, peer: int, promised: int = 0) -> Effects:
        """Say to a member in which view this process is, and which one it has promised to accept."""
        view = self.group.view
        assert view is not None
        empty = {"delivered": (), "released": ()}
        yield self.group.send((peer,), Report, view=view.id, promised=promised, **empty)

    def acceptable(self, report: Report) -> int:
        """The least number of a view that this process may enter, if others are in another one.

        It may have promised to accept one of the same number, of a coordinator that has given up.
        """
        promised = self.group.change.promised
        return promised.number + (report.view < promised and report.view.number == promised.number)

    def refuses(self, report: Report, sender: int) -> bool:
        """Whether a member cannot enter the view any more: it has promised to accept a greater one."""
        view = self.group.view
        return view is not None and sender in view.processes and report.promised > view.id.number

    def on_report(self, report: Report, sender: int, now: int) -> Effects:
        """Learn what a member has, and send it again what it lacks."""
        group = self.group
        if group.view is None or group.seeking:
            return
        if report.view > group.view.id:
            yield from self.say_view(sender)  # the answer is the newer view, or a great enough one
            yield from group.change.hear(max(report.promised, self.acceptable(report)), now)
            return
        if report.view < group.view.id:
            proposal = group.change.proposal
            joins = proposal is not None and sender in proposal.waiting()
            if joins or self.refuses(report, sender):
                yield from group.change.hear(report.promised, now)
            yield from group.admission.correct(sender, now)
            return
        group.epochs.learn(report.epochs)
        if sender == group.view.server and report.delivered:  # else it says only its view
            self.learn_above(report.above, now)
            group.detector.learn_outside(report.outside, now)
            group.places.learn(group.agreed.complete(report.epochs), report.outside)
        if report.promised > group.change.promised.number:
            yield from group.change.hear(report.promised, now)
        casting = group.casting
        if casting is None or not group.is_current(report.view, sender):
            return
        if not casting.fits(report, sender):
            return
        leads, was_complete = group.detector.leads(now), casting.complete()
        casting.note(sender, report)
        pause = group.timing.heartbeat
        for caster, cast in casting.missing(sender, now, pause, leads, report.leads):
            mine = caster == group.me.process
            copy = group.in_view(cast)
            yield Send((sender,), copy if mine else passed(group, caster, sender, copy))
            yield Count("retransmissions")
        if leads and not was_complete and casting.complete():
            yield from self.report(now)
        yield from group.go_on(casting, now)
