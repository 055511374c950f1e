"""What travels in parts and what is fetched: losses, pacing, and that nothing of a message changes."""

import random
from dataclasses import astuple, replace

from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import Deliver, MessageId, Send
from testbed.protocols.daisy import Daisy
from testbed.protocols.groups.agreed import Install, Label, parts_of
from testbed.protocols.groups.flush import FLUSHED, INSTALL, Fetch, Flush, Missing, Part
from testbed.protocols.groups.group import Group
from testbed.protocols.groups.messages import NO_VIEW, Cast, Report
from testbed.protocols.groups.stamped_cast import StampedCast
from testbed.protocols.groups.transfer import AT_ONCE, Assembly, Fetching
from testbed.protocols.groups.view import View, ViewId
from tests.protocols.groups.members import A, B, C, group_at, view_of
from tests.world import MS

VIEW = ViewId(7, A)
PAUSE = 10


def in_parts(data: bytes, view: ViewId = VIEW, what: int = FLUSHED) -> tuple[Part, ...]:
    return parts_of(data, view, what, B, 0)


def asked(assembly: Assembly, now: int) -> list[tuple[int, tuple[int, ...]]]:
    """Whom it asks again, and for which parts."""
    return [(p, m.parts) for p, m in assembly.requests(A, 0, now, PAUSE)]


# parts


def test_parts_that_are_lost_are_asked_for_again_after_a_while() -> None:
    whole = bytes(range(256)) * 20
    parts = in_parts(whole)
    assert len(parts) == 5
    assembly = Assembly()
    for now, index in enumerate((4, 0, 2)):
        assert assembly.add(parts[index], B, now) is None
    assert asked(assembly, 2 + PAUSE - 1) == []
    assert asked(assembly, 2 + PAUSE) == [(B, (1, 3))]
    assert assembly.add(parts[3], B, 20) is None
    assert asked(assembly, 20 + PAUSE - 1) == []  # something has arrived meanwhile
    assert asked(assembly, 20 + PAUSE) == [(B, (1,))]
    assert assembly.add(parts[1], B, 31) == whole
    assert asked(assembly, 100) == []


def test_a_part_that_comes_again_does_not_delay_that_the_others_are_asked_for() -> None:
    parts = in_parts(bytes(3000))
    assembly = Assembly()
    for now in range(PAUSE):  # the first answers every Flush
        assembly.add(parts[0], B, now)
    assert asked(assembly, PAUSE) == [(B, (1, 2))]


def test_what_is_asked_for_names_the_view_and_what_it_is() -> None:
    assembly = Assembly()
    assembly.add(in_parts(bytes(3000), what=INSTALL)[1], C, 0)
    [(peer, missing)] = assembly.requests(A, 5, PAUSE, PAUSE)
    assert peer == C
    assert isinstance(missing, Missing)
    assert (missing.view, missing.what, missing.parts) == (VIEW, INSTALL, (0, 2))
    assert (missing.source, missing.group) == (A, 5)


def test_parts_of_another_view_replace_those_of_an_old_one() -> None:
    assembly, newer = Assembly(), ViewId(8, A)
    old, new = in_parts(b"a" * 3000), in_parts(b"b" * 3000, newer)
    for part in (old[0], old[1], new[2], new[1]):
        assert assembly.add(part, B, 0) is None
    assert assembly.add(new[0], B, 0) == b"b" * 3000


def test_what_comes_from_different_processes_is_kept_apart() -> None:
    assembly = Assembly()
    parts = in_parts(bytes(2000))
    assert assembly.add(parts[0], B, 0) is None
    assert assembly.add(parts[1], C, 0) is None
    assert asked(assembly, PAUSE) == [(B, (1,)), (C, (0,))]


def test_only_some_of_many_missing_parts_are_asked_for_at_a_time() -> None:
    assembly = Assembly()
    assembly.add(in_parts(bytes(1200 * 3 * AT_ONCE))[0], B, 0)
    [(_, lacks)] = asked(assembly, PAUSE)
    assert lacks == tuple(range(1, AT_ONCE + 1))


@given(st.binary(max_size=9000), st.data())
def test_parts_in_any_order_some_twice_some_lost_make_the_whole(
    data: bytes, draw: st.DataObject
) -> None:
    parts = in_parts(data)
    assembly, now, whole = Assembly(), 0, None
    lost = draw.draw(st.sets(st.sampled_from(range(len(parts))), max_size=len(parts) - 1))
    order = draw.draw(st.permutations([*range(len(parts)), *range(0, len(parts), 2)]))
    for index in order:
        if index not in lost and whole is None:
            whole = assembly.add(parts[index], B, now)
    while whole is None:
        now += PAUSE
        for _, lacks in asked(assembly, now):
            for index in lacks:
                whole = assembly.add(parts[index], B, now)
    assert whole == data


# fetching


def names(count: int, source: int = B) -> list[MessageId]:
    return [MessageId(source, seq) for seq in range(1, count + 1)]


def requests(fetching: Fetching, now: int) -> dict[int, tuple[MessageId, ...]]:
    return {peer: fetch.names for peer, fetch in fetching.requests(A, 0, now, PAUSE)}


def test_each_message_is_asked_for_from_one_who_has_it_and_again_if_it_does_not_come() -> None:
    fetching = Fetching()
    first, second, third = names(3)
    fetching.need({first: B, second: C, third: B})
    assert requests(fetching, 5) == {B: (first, third), C: (second,)}
    assert requests(fetching, 5 + PAUSE - 1) == {}
    assert fetching.take(Cast(*first), 5)
    assert not fetching.take(Cast(*first), 5)
    assert requests(fetching, 5 + PAUSE) == {B: (third,), C: (second,)}
    assert fetching.take(Cast(*third), 5)
    assert fetching.take(Cast(*second), 5)
    assert requests(fetching, 99) == {}
    assert set(fetching.found) == {first, second, third}


def test_what_is_not_needed_is_not_taken() -> None:
    fetching = Fetching()
    fetching.need({MessageId(B, 1): B})
    assert not fetching.take(Cast(B, 2), 5)
    assert fetching.found == {}


def test_the_next_messages_are_asked_for_as_soon_as_those_asked_for_are_there() -> None:
    fetching, wanted = Fetching(), names(2 * AT_ONCE + 5)
    fetching.need(dict.fromkeys(wanted, B))
    rounds = []
    while fetching.holders:
        [(_, lot)] = requests(fetching, 0).items()
        rounds.append(len(lot))
        for name in lot[:-1]:
            fetching.take(Cast(*name), 5)
            assert requests(fetching, 0) == {}  # one round at a time
        fetching.take(Cast(*lot[-1]), 5)
    assert rounds == [AT_ONCE, AT_ONCE, 5]


def test_nothing_is_fetched_for_a_view_change_that_is_over() -> None:
    fetching = Fetching()
    fetching.need(dict.fromkeys(names(3), B))
    requests(fetching, 0)
    fetching.forget()
    assert requests(fetching, 99) == {}
    assert not fetching.take(Cast(B, 1), 5)


@given(
    st.dictionaries(
        st.builds(MessageId, st.integers(0, 3), st.integers(1, 99)),
        st.integers(0, 3),
        max_size=3 * AT_ONCE,
    ),
    st.floats(0, 0.9),
    st.randoms(use_true_random=False),
)
def test_all_that_is_needed_arrives_though_much_is_lost(
    holders: dict[MessageId, int], loss: float, rng: random.Random
) -> None:
    fetching, now, sent = Fetching(), 0, 0
    fetching.need(holders.copy())
    while fetching.holders:
        for holder, lot in requests(fetching, now).items():
            assert all(holders[name] == holder for name in lot)
            for name in lot:
                sent += 1
                if rng.random() >= loss:
                    fetching.take(Cast(*name), 5)
        now += PAUSE
    assert fetching.found.keys() == holders.keys()
    if not loss:
        assert sent == len(holders)  # each once


# in a group


def sends(group: Group, message: object, sender: int, now: int) -> list[Send]:
    return [e for e in group.receive(message, sender, now) if isinstance(e, Send)]  # type: ignore[arg-type]


def test_an_answer_to_a_flush_has_names_and_no_bodies_and_is_sent_whole_only_once() -> None:
    view = view_of(A, B)
    b = group_at(B, view)
    for seq in range(1, 201):
        list(b.cast(Cast(B, seq, bytes(1000)), 0))
    flush = Flush(A, 0, view=ViewId(view.id.number + 256, A))
    first = [e.message for e in sends(b, flush, A, 1)]
    assert len(first) > 2
    assert sum(m.size for m in first) < 200 * 40
    assert sends(b, flush, A, 2) == []  # it may have come by way of another as well
    again = [e.message for e in sends(b, flush, A, MS)]
    assert [astuple(m) for m in again] == [astuple(first[0])]  # the rest, if A lacks it, on request
    missing = Missing(A, 0, view=flush.view, what=FLUSHED, parts=(1, 2, 99))
    assert [astuple(e.message) for e in sends(b, missing, A, MS)] == list(map(astuple, first[1:3]))
    assert sends(b, missing, A, MS + 1) == []
    stale = replace(missing, view=view.id)
    assert sends(b, stale, A, 3 * MS) == []


def test_who_lacks_a_message_of_a_new_view_fetches_it_and_delivers_it_before_it_goes_on() -> None:
    view = view_of(A, B)
    b = group_at(B, view)
    new = View(ViewId(view.id.number + 256, A), view.members)
    list(b.receive(Flush(A, 0, view=new.id), A, 1))
    old = [Cast(A, seq, b"x", view=view.id, time=seq) for seq in (1, 2)]
    install = Install(new, labels=tuple(map(Label.of, old)))
    for part in parts_of(install.encode(), new.id, INSTALL, A, 0):
        fetches = [e.message for e in sends(b, part, A, 2)]
    assert [m.names for m in fetches if isinstance(m, Fetch)] == [((A, 1), (A, 2))]
    assert b.view == view
    effects = list(b.receive(replace(old[1], view=NO_VIEW), A, 3))
    assert not [e for e in effects if isinstance(e, Deliver)]
    effects = list(b.receive(replace(old[0], view=NO_VIEW), A, 4))
    assert [e.message.id for e in effects if isinstance(e, Deliver)] == [(A, 1), (A, 2)]
    assert b.view == new
    assert [e for e in effects if isinstance(e, Send) and isinstance(e.message, Report)]


def test_a_message_that_is_fetched_is_of_no_view_so_that_nobody_else_acts_on_it() -> None:
    a, b = (group_at(p, view_of(A, B)) for p in (A, B))
    list(a.cast(Cast(A, 1), 0))
    [copy] = sends(a, Fetch(B, 0, names=(MessageId(A, 1), MessageId(A, 2))), B, 1)
    assert copy.peers == (B,)
    assert sends(a, Fetch(B, 0, names=(MessageId(A, 1),)), B, 2) == []
    assert len(sends(a, Fetch(B, 0, names=(MessageId(A, 1),)), B, 1 + MS)) == 1
    assert isinstance(copy.message, Cast)
    assert copy.message.view == NO_VIEW
    assert not [e for e in b.receive(copy.message, A, 2) if isinstance(e, Deliver)]


NAMES = st.sets(st.builds(MessageId, st.integers(0, 7), st.integers(0, 99)), max_size=6)


@given(st.binary(max_size=9), st.lists(st.integers(0, 99), max_size=4), NAMES, st.booleans())
def test_stamps_survive_being_fetched(
    payload: bytes, beyond: list[int], after: set[MessageId], to_all: bool
) -> None:
    above = ViewId(5, 2) if beyond else NO_VIEW
    dests = None if to_all else frozenset({3})
    cast = StampedCast(
        1, 2, payload, 7, view=ViewId(9, 1), time=9, vector=(1, 2), dests=dests,
        above=above, beyond=tuple(beyond), after=tuple(sorted(after)),
    )  # fmt: skip
    a = group_at(A, view_of(A, B))
    a.kept.record(cast)
    [copy] = sends(a, Fetch(B, 0, names=(cast.id,)), B, 1)
    codec = Daisy.codec(7, 8)
    read = codec.decode(codec.encode(copy.message))
    assert isinstance(read, StampedCast)
    assert read.stamp() == cast.stamp()
    assert (read.id, read.payload, read.sent_at) == (cast.id, cast.payload, cast.sent_at)
    assert (read.time, read.dests) == (cast.time, cast.dests)
