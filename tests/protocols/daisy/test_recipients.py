"""Inside a group to recipients only: the flow by hand, the daisy's scenarios, what chance makes."""

import dataclasses
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.matrices import Matrices
from testbed.protocols.daisy.messages import Cast, Report
from testbed.protocols.daisy.view import Member, View, ViewId
from testbed.protocols.daisy.view_change import HeldCast, State
from testbed.protocols.wire import WireError
from tests.protocols.daisy.daisies import (
    QUICK,
    SERVERS,
    crash_at,
    crash_in_a_row,
    heal,
    leave_and_join,
    scenario,
    stand_still,
    start_again,
    weather,
)
from tests.protocols.members import Members

RECIPIENTS = dataclasses.replace(QUICK, inside="recipients")
A, B, C, D = range(4)


def flowers(processes: int, seed: int = 0, k: int = 1, levels: int = 2, **more: Any) -> Members:
    settings = dataclasses.replace(RECIPIENTS, resilience=k, levels=levels)
    world = {"protocol": lambda place: Daisy(place, settings), "delays_ms": (1, 3), **more}
    return Members(processes, seed, **world)


# by hand: one group of four


def group_of_four(k: int, top: bool = True) -> list[Matrices]:
    members = tuple(Member(p, 0, frozenset({p}), p) for p in range(4))
    return [Matrices(View(ViewId(7, A), members), p, (), k, top) for p in range(4)]


def message(source: int, seq: int, *to: int) -> Cast:
    return Cast(source, seq, dests=frozenset(to))


def report(group: list[Matrices], sender: int) -> None:
    """A member tells all others what it has received and released."""
    casting = group[sender]
    said = Report(
        sender,
        0,
        view=casting.id,
        promised=0,
        delivered=casting.progress(),
        released=tuple(casting.released[sender]),
    )
    for peer in range(4):
        if peer != sender:
            group[peer].note(sender, said)


def arrive(casting: Matrices, cast: Cast, sender: int) -> bool:
    casting.note_vector(sender, cast.vector)
    return casting.hold(cast, sender)


def test_a_cast_goes_to_its_destinations_with_a_matrix_and_its_number() -> None:
    a, b, c, _ = group_of_four(k=1)
    m1, copies = a.send(message(A, 1, B), now=0)
    assert [peers for peers, _ in copies] == [(B,)]
    assert m1.vector == (0, 1, 0, 0, *[0] * 12, 1)
    m2, copies = a.send(message(A, 2, C, A), now=0)
    assert [peers for peers, _ in copies] == [(C,)]
    assert m2.vector == (0, 1, 1, 0, *[0] * 12, 2)
    assert arrive(b, m1, A)
    assert b.next() == (A, m1)  # A and B have it: nothing more is asked for with k = 1
    assert not arrive(b, m1, A)
    m3, copies = b.send(message(B, 1, C), now=0)
    assert [peers for peers, _ in copies] == [(C,)]
    assert m3.vector == (1, 1, 0, 0, 0, 0, 1, 0, *[0] * 8, 1)  # m1 was firm, says the diagonal
    assert arrive(c, m3, B)
    assert c.next() == (B, m3)  # nothing that was sent to C comes before it


def test_a_cast_waits_for_what_was_sent_to_its_destination_before() -> None:
    a, b, c, _ = group_of_four(k=0)
    m1, _ = a.send(message(A, 1, C), now=0)
    m2, _ = a.send(message(A, 2, B), now=0)
    arrive(b, m2, A)
    assert b.next() == (A, m2)
    m3, _ = b.send(message(B, 1, C), now=0)
    arrive(c, m3, B)
    assert not c.deliverable_now(m3, B)
    assert c.next() is None
    arrive(c, m1, A)
    assert [c.next(), c.next(), c.next()] == [(A, m1), (B, m3), None]


def test_nothing_is_handed_on_before_all_that_its_sender_cast_earlier_is_firm() -> None:
    group = a, b, c, _ = group_of_four(k=1)
    m1, _ = a.send(message(A, 1, B), now=0)
    m2, _ = a.send(message(A, 2, C), now=0)
    arrive(c, m2, A)
    report(group, C)
    assert a.firm[A] == 0  # of m1 nobody has said anything
    assert c.next() is None
    arrive(b, m1, A)
    assert b.news
    report(group, B)
    assert a.firm[A] == 2
    assert a.news  # C waits to hear that
    assert c.next() is None
    report(group, A)
    assert c.next() == (A, m2)


def test_with_two_others_to_hold_it_a_witness_gets_a_copy_and_all_wait_for_its_report() -> None:
    group = a, b, c, d = group_of_four(k=2)
    m1, copies = c.send(message(C, 1, B), now=0)
    assert [peers for peers, _ in copies] == [(B, D)]  # D is next after C
    assert m1.vector == (*[0] * 8, 0, 1, 0, 1, *[0] * 4, 1)
    arrive(b, m1, C)
    assert b.next() is None
    assert not c.everywhere(m1.id)
    report(group, B)
    assert not c.everywhere(m1.id)
    arrive(d, m1, C)
    assert d.next() == (C, m1)  # of B it knows
    report(group, D)
    assert b.next() == (C, m1)
    assert c.everywhere(m1.id)  # may be relayed
    assert a.firm[C] == 0
    report(group, C)
    assert a.firm[C] == 1


def test_the_server_gets_what_leaves_the_group_and_all_get_what_nobody_answers_for() -> None:
    inner, top = group_of_four(k=1, top=False), group_of_four(k=1)
    assert inner[C].recipients(message(C, 1, D), C) == [D]
    assert inner[C].recipients(message(C, 1, D, 9), C) == [A, D]
    assert inner[A].recipients(message(A, 1, 9), A) == [B]  # a witness
    assert top[C].recipients(message(C, 1, 9), C) == [A, B, D]


def test_a_cast_is_kept_by_those_who_have_it_until_all_of_them_have_released_it() -> None:
    group = a, b, _, _ = group_of_four(k=1)
    m1, _ = a.send(message(A, 1, B), now=0)
    arrive(b, m1, A)
    assert b.next() == (A, m1)
    b.enter(A + 1, m1)
    for sender in (B, C, D):
        report(group, sender)
    a.release(lambda cast: True)
    assert not a.released_by_others(m1.id)
    assert list(a.forget(lambda cast: False)) == []
    b.release(lambda cast: True)
    report(group, B)
    assert a.released_by_others(m1.id)
    assert list(b.forget(lambda cast: False)) == []
    report(group, A)
    assert list(b.forget(lambda cast: False)) == [m1.id]
    assert list(a.forget(lambda cast: False)) == [m1.id]


def test_only_a_recipient_that_lacks_a_cast_gets_it_again() -> None:
    group = a, b, _, _ = group_of_four(k=1)
    m1, _ = a.send(message(A, 1, B), now=0)
    m2, _ = a.send(message(A, 2, B, C), now=5)
    for sender in (B, C, D):
        report(group, sender)
    assert a.missing(B, now=9, pause=10) == []
    assert a.missing(B, now=10, pause=10) == [m1]
    assert a.missing(B, now=15, pause=10) == []
    assert a.missing(C, now=15, pause=10) == [m2]
    assert a.missing(D, now=15, pause=10) == []
    arrive(b, m2, A)
    report(group, B)
    assert a.missing(B, now=25, pause=10) == [m1, m2]  # it has no prefix
    arrive(b, m1, A)
    report(group, B)
    assert a.missing(B, now=40, pause=10) == []


def test_what_comes_after_a_lost_cast_of_the_same_member_is_not_carried_over() -> None:
    casts = [message(8, n, B) for n in range(6)]
    here = ViewId(7, A)
    states = [
        State(
            here, (casts[0],), (0, 2, 0, 0), (HeldCast(B, 4, casts[2]), HeldCast(B, 2, casts[1]))
        ),
        State(here, (), (0, 1, 0, 0), (HeldCast(B, 6, casts[3]),)),
        State(here, (), (0, 0, 0, 0)),
        State(
            ViewId(6), (casts[4],), (0, 5, 0), (HeldCast(B, 6, casts[5]),)
        ),  # two of three are missing
        State(ViewId(), ()),
    ]
    a, *_ = group_of_four(k=1)
    assert {c.seq for c in a.union(states)} == {0, 1, 4}
    states.append(State(here, (), (0, 0, 0, 0), (HeldCast(B, 3, casts[5]),)))
    assert {c.seq for c in a.union(states)} == {0, 1, 2, 4, 5}


def test_too_few_are_left_if_more_than_k_have_not_brought_their_states() -> None:
    a, *_ = group_of_four(k=2)
    here, other = State(a.id, ()), State(ViewId(), ())
    assert not a.is_short({A: here, D: here})
    assert a.is_short({A: here})
    assert a.is_short({A: here, B: other, 9: here})


words = st.integers(0, 2**32 - 1)


@given(st.lists(words, min_size=1, max_size=5), st.lists(st.tuples(words, words)), st.data())
def test_a_state_is_read_as_it_was_written(
    firm: list[int], seen: list[tuple[int, int]], data: st.DataObject
) -> None:
    held = data.draw(st.lists(st.tuples(st.integers(0, len(firm) - 1), words), max_size=4))
    casts = [Cast(3, n, b"x" * n, dests=frozenset({n})) for n in range(len(held))]
    parts = tuple(HeldCast(i, x, cast) for (i, x), cast in zip(held, casts, strict=True))
    state = State(ViewId(5, 1), tuple(casts), tuple(firm), parts, tuple(seen))  # type: ignore[arg-type]
    encoding = state.encode()
    read = State.decode(encoding)
    assert read.encode() == encoding
    assert (read.view, read.firm, read.seen) == (state.view, state.firm, state.seen)
    assert [h[:2] for h in read.held] == held
    for cut in range(4, len(encoding) - 12, 4):
        if cut != len(State(state.view, state.casts).encode()):
            with pytest.raises(WireError):
                State.decode(encoding[:cut])
    with pytest.raises(WireError):
        State.decode(encoding + bytes(4))


def test_a_held_cast_of_nobody_in_the_view_is_refused() -> None:
    with pytest.raises(WireError):
        State.decode(State(ViewId(), (), (1, 1), (HeldCast(2, 1, message(1, 1, 2)),)).encode())


@pytest.mark.parametrize(
    "settings", [{"safe": False}, {"resilience": -1}, {"split_above": 5}, {"merge_below": 2}]
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"takes safe, and a resilience|only groups in which all get"
    ):
        dataclasses.replace(RECIPIENTS, **settings)


# in the daisy


def test_only_recipients_and_servers_on_the_way_get_a_copy() -> None:
    world = flowers(12)
    world.run(30)
    copies: list[tuple[int, int, int]] = []

    def watch(sender: int, peer: int, message: Any) -> bool:
        if isinstance(message, Cast):
            assert message.control_size == 16 + 4 * (
                (10 if message.group == 4096 else 17) + len(message.dests or ())
            )
            copies.append((message.group, sender, peer))
        return False

    world.drops = watch
    world.say(1, [2, 6])
    world.settle()
    assert sorted(copies) == [(0, 1, 0), (0, 1, 2), (1, 4, 6), (4096, 0, 4)]
    assert world.delivered(6) == world.delivered(2) == [(1, 1)]
    world.run(200)
    assert not any(group.history for p in range(12) for group in world.daisy(p).groups)


PLACES = [
    pytest.param(1, 2, 3, (1, 2), id="nobody serves"),
    pytest.param(0, 1, 2, (0, 1), id="a serves"),
    pytest.param(1, 0, 2, (1, 0), id="b serves"),
    pytest.param(1, 5, 2, (1, 0), id="b elsewhere, lost on the way to the server"),
    pytest.param(0, 5, 1, (0, 4), id="b elsewhere, lost between servers, a serves"),
    pytest.param(1, 5, 2, (0, 4), id="b elsewhere, lost between servers"),
    pytest.param(1, 5, 2, (4, 5), id="b elsewhere, lost on the way from the server"),
    pytest.param(1, 4, 0, (0, 4), id="b and c serve"),
    pytest.param(1, 5, 6, (4, 5), id="b and c elsewhere"),
]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("a", "b", "c", "lost"), PLACES)
def test_an_omission_and_a_crash_do_not_block_the_daisy(
    a: int, b: int, c: int, lost: tuple[int, int], k: int
) -> None:
    world = flowers(8, k=k)
    scenario(world, a, b, c, lost)
    assert world.delivered(b) == [(a, 1), (c, 1)]
    world.sound()


# what each rule is for


def lonely(sender: int, lacks: int) -> Callable[[int, int, Any], bool]:
    """All casts of a process to another are lost."""
    return lambda s, peer, m: (s, peer) == (sender, lacks) and isinstance(m, Cast)


def answered(world: Members, to: list[int], crash: list[int]) -> Members:
    """1 casts, then tells 0, which tells 2 if it hears of it; 2 gets nothing of 1."""
    world.run(30)
    world.drops = lonely(1, 2)
    world.say(1, to)
    world.say(1, [0])
    world.run(15)
    if (1, 2) in world.delivered(0):
        world.say(0, [2])
    for process in crash:
        world.crash(process)
    world.settle(3000)
    return world


@pytest.mark.parametrize(("k", "ok"), [(0, False), (1, True), (2, True)])
def test_without_a_second_copy_the_crash_of_a_sender_leaves_a_hole(k: int, ok: bool) -> None:
    assert answered(flowers(4, k=k), to=[2], crash=[1]).check().ok == ok


@pytest.mark.parametrize(("k", "ok"), [(1, False), (2, True), (3, True)])
def test_so_many_copies_survive_so_many_crashes_and_not_more(k: int, ok: bool) -> None:
    assert answered(flowers(4, k=k), to=[2, 3], crash=[1, 3]).check().ok == ok


class Hasty(Matrices):
    """Asks for copies of a cast, and not of those before it."""

    def is_firm(self, cast: Cast, i: int) -> bool:
        return 1 + self._holders(cast, i) >= self.k


@pytest.mark.parametrize(("way", "ok"), [(Matrices, True), (Hasty, False)])
def test_copies_of_a_cast_are_not_enough(
    way: type[Matrices], ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.protocols.daisy.daisy.Matrices", way)
    assert answered(flowers(4), to=[2], crash=[1]).check().ok == ok


def test_what_is_for_the_view_to_come_is_not_mistaken_for_what_was_seen() -> None:
    """The server has cast (5,1) to 2, which is lost, and (5,2) to 3, and crashes."""
    world = flowers(8)
    world.run(30)
    world.drops = lonely(0, 2)
    world.say(5, [2])
    world.say(5, [3])
    while (5, 2) not in {tuple(c.id) for c in world.group(3).casting.held.values()}:  # type: ignore[union-attr]
        world.step()
    world.crash(0)
    world.settle(3000)
    assert world.delivered(2) == [(5, 1)]
    assert world.delivered(3) == [(5, 2)]
    world.sound()


# crashes


def busy_run(seed: int = 1, k: int = 1) -> Members:
    world = flowers(12, seed, k, answering=0.1, wire=False)
    world.run(25)
    for process, to in ((1, [2, 6, 10]), (1, [3, 7]), (5, None), (9, [0, 4]), (5, [6])):
        world.say(process, to)
    return world


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_may_crash_at_any_event_and_nothing_is_lost_twice_or_out_of_order(
    server: int,
) -> None:
    crash_at(busy_run, server, first=server // 4, every=4)


@pytest.mark.parametrize("gap_ms", [0, 1, 20, 85, 110, 150])
@pytest.mark.parametrize("servers", [(0, 1), (4, 5), (0, 4), (5, 6)])
def test_the_old_and_the_new_server_crash_in_a_row(servers: tuple[int, ...], gap_ms: int) -> None:
    for first_ms in (2, 9):
        crash_in_a_row(busy_run(first_ms, k=2), servers, first_ms, gap_ms)


# partitions, suspicion, coming and going


@pytest.mark.parametrize(
    ("island", "k"),
    [([4], 1), ([5], 1), ([4, 5, 6, 7], 1), ([1, 5, 9], 1), ([4, 5], 2), ([6, 7], 2)],
)
@pytest.mark.parametrize("ms", [40, 150, 900])
def test_a_partition_heals_and_nothing_is_lost(island: list[int], k: int, ms: int) -> None:
    heal(flowers(12, ms, k, answering=0.03, wire=False), island, ms)


def test_who_lacks_more_than_k_of_a_view_waits_for_them_before_it_goes_on() -> None:
    world = flowers(8)
    world.run(50)
    world.part([1, 2], [3])
    world.run(250)
    assert world.view(1) == world.view(3) == (0, 1, 2, 3)
    world.run(150)
    assert (world.view(0), world.view(1), world.view(3)) == ((0,), (1, 2), (3,))
    world.part()
    world.run(400)
    assert set(world.view(3)) == {0, 1, 2, 3}


@pytest.mark.parametrize("process", [4, 5])
def test_a_process_that_stands_still_is_suspected_and_returns(process: int) -> None:
    stand_still(flowers(12), process)


def test_processes_that_start_again_are_members_again() -> None:
    start_again(flowers(12, answering=0.03), gap_ms=200)  # one at a time


def test_a_process_leaves_while_messages_flow_and_joins_again() -> None:
    leave_and_join(flowers(12), 4)


# chance


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("levels", [2, 3])
def test_nothing_is_lost_in_any_weather(rate: float, levels: int, k: int) -> None:
    world = flowers(16, levels, k, levels, loss=rate, answering=0.03, wire=False)
    rng = random.Random(levels)
    for number in range(32):
        to = rng.sample(range(16), 3) if number % 3 else None
        world.at(30 + 5 * number, partial(world.say, number * 7 % 16, to))
    world.run(200)
    world.settle()
    assert world.due() == 0
    world.sound()


def storm(seed: int) -> Members:
    """Losses, and now and then k processes that crash, start again, stand still or are cut off."""
    rng = random.Random(seed)
    processes, k = rng.choice([3, 6, 8, 12]), rng.choice([1, 2])
    world = flowers(
        processes,
        seed,
        k,
        rng.choice([2, 2, 3]),
        loss=rng.choice([0, 0, 0.05]),
        delays_ms=rng.choice([(1, 3), (0.1, 1), (1, 15)]),
        answering=rng.choice([0, 0.05]),
        wire=False,
    )
    at = rng.uniform(20, 200)
    for _ in range(rng.randint(1, 2)):
        struck = rng.sample(range(processes), rng.randint(1, k))
        deed = rng.choice([world.crash, world.crash, world.restart, world.pause, None])
        if deed is None:
            world.at(at, partial(world.part, struck))
            world.at(at + rng.choice([20, 80, 150, 400]), world.part)
        else:
            for process in struck:
                when = at + rng.choice([0, 0, 1, 30, 80])
                world.at(when, partial(deed, process))
                world.at(when + rng.choice([30, 100, 250]), partial(world.resume, process))
        at += 1000
    for _ in range(rng.randint(5, 30)):
        process, when = rng.randrange(processes), rng.uniform(20, at - 700)
        for number in range(rng.choice([1, 3])):
            to = rng.sample(range(processes), rng.randint(1, 3)) if rng.random() < 0.8 else None
            world.at(when + number / 3, partial(world.say, process, to))
    world.run(at)
    world.settle()
    return world


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_no_storm_makes_a_violation(start: int) -> None:
    weather(storm, range(start, start + 10))
