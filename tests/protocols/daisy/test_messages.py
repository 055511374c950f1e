"""What the members of a daisy's groups say to each other, and its encoding."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import MessageId
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.messages import (
    INSTALL,
    NO_VIEW,
    STATE,
    Cast,
    Expelled,
    Flush,
    Join,
    Leave,
    Part,
    Report,
    Silence,
)
from testbed.protocols.daisy.stamped_cast import StampedCast
from testbed.protocols.daisy.view import Member, View, ViewId
from testbed.protocols.daisy.view_change import (
    PART_BYTES,
    HeldCast,
    Install,
    Reshape,
    State,
    parts_of,
)
from testbed.protocols.wire import HEADER, WireError

PROCESSES = 9
words = st.integers(0, 2**32 - 1)
processes = st.integers(0, PROCESSES - 1)
some = st.frozensets(processes)
vectors = st.lists(words, max_size=6).map(tuple)
views = st.builds(ViewId, words, words)
rosters = st.frozensets(processes, min_size=1)
members = st.builds(Member, processes, words, rosters, words)
casts = st.builds(
    Cast,
    processes,
    words,
    st.binary(max_size=20),
    st.integers(0, 2**63),
    view=views,
    time=words,
    vector=vectors,
    dests=st.none() | some,
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    size = draw(st.integers(0, 5))
    return Report(
        draw(processes),
        0,
        view=draw(views),
        promised=draw(words),
        delivered=draw(st.tuples(*[words] * size)),
        released=draw(st.tuples(*[words] * (size + 1))),
        above=tuple(draw(some)),
    )


messages = st.one_of(
    casts,
    reports(),
    st.builds(
        Join, processes, words, backing=words, of=words, how=st.integers(0, 2), roster=rosters
    ),
    st.builds(Silence, processes, words),
    st.builds(Leave, processes, words, with_roster=st.booleans()),
    st.builds(Expelled, processes, words, view=views),
    st.builds(Flush, processes, words, view=views),
    st.builds(
        Part,
        processes,
        words,
        view=views,
        what=st.sampled_from([STATE, INSTALL]),
        index=st.just(3),
        count=st.integers(4, 9),
        data=st.binary(max_size=30),
    ),
)


def fields(message: Any) -> tuple[Any, ...]:
    return tuple(getattr(message, f.name) for f in dataclasses.fields(message))


@given(messages)
def test_every_message_is_decoded_as_it_was_encoded_and_is_as_long_as_it_says(
    message: Any,
) -> None:
    codec = Daisy.codec(7, PROCESSES)
    data = codec.encode(message)
    assert len(data) == message.size
    decoded = codec.decode(data)
    assert type(decoded) is type(message)
    assert fields(decoded) == fields(message)


@given(messages, st.integers(0, 40))
def test_control_information_that_is_cut_short_is_refused_or_means_something_shorter(
    message: Any, keep: int
) -> None:
    control = message.encode_control()[:keep]
    try:
        decoded = type(message)(0, 0, **type(message).decode_control(control, PROCESSES))
    except WireError:
        return
    assert decoded.encode_control() == control


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Cast, [1, 1, 2 << 1, 5, 1]),  # half a vector
        (Cast, [1, 1, 1 << 1 | 1, 5, 1, 3]),  # to all, and to 3
        (Cast, [1, 1, 0, 5, 3, 2]),  # not in order
        (Cast, [1, 1, 0, 5, PROCESSES]),
        (Report, [1, 1, 0, 2, 1, 1, 1, 1]),
        (Report, [1, 1, 0, 0, 0, 4, 4]),
        (Join, [1, 0, 0]),
        (Join, [1, 0, 3, 3]),
        (Leave, [2]),
        (Flush, [1]),
        (Expelled, [1, 2, 3]),
        (Part, [1, 1, 2, 0, 1]),
        (Part, [1, 1, 0, 1, 1]),
    ],
)
def test_malformed_control_information_is_refused(kind: Any, words: list[int]) -> None:
    control = b"".join(word.to_bytes(4, "big") for word in words)
    with pytest.raises(WireError):
        kind.decode_control(control, PROCESSES)
    with pytest.raises(WireError):
        kind.decode_control(control + b"x" if kind is not Part else control[:7], PROCESSES)


@given(views, st.lists(casts, max_size=5))
def test_a_state_in_parts_is_put_together_again(view: ViewId, held: list[Cast]) -> None:
    state = State(view, tuple(held))
    parts = parts_of(state.encode() * 1, view, STATE, 0, 0)
    assert [part.index for part in parts] == list(range(parts[0].count))
    decoded = State.decode(b"".join(part.data for part in parts))
    assert decoded.view == view
    assert [(c.id, c.time, c.dests, c.payload, c.sent_at) for c in decoded.casts] == [
        (c.id, c.time, c.dests, c.payload, c.sent_at) for c in held
    ]


@given(st.lists(members, min_size=1, max_size=4), st.lists(members, max_size=3), st.booleans())
def test_an_install_is_decoded_as_it_was_encoded(
    inside: list[Member], absent: list[Member], weak: bool
) -> None:
    view = View(ViewId(3, 1), tuple(inside), tuple(absent), weak)
    reshape = Reshape(7, tuple(inside), (1, 2)) if weak else None
    install = Install(view, (MessageId(3, 7),), (), reshape)
    assert Install.decode(install.encode()) == install
    with pytest.raises(WireError):
        Install.decode(install.encode()[:-1])
    with pytest.raises(WireError):
        Install.decode(install.encode() + b"x")


def test_no_part_is_longer_than_a_frame() -> None:
    parts = parts_of(bytes(10_000), ViewId(1, 1), INSTALL, 0, 0)
    assert max(part.size for part in parts) == HEADER.size + 20 + PART_BYTES < 1400
    assert sum(len(part.data) for part in parts) == 10_000


# states


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
        State.decode(
            State(
                ViewId(), (), (1, 1), (HeldCast(2, 1, Cast(1, 1, dests=frozenset({2}))),)
            ).encode()
        )


# stamps

NAMES = st.sets(st.builds(MessageId, st.integers(0, 7), words), max_size=6)
STAMPED = st.builds(
    lambda source, seq, payload, view, vector, dests, beyond, after: StampedCast(
        source, seq, payload, 7, 3, view=ViewId(*view), time=9, vector=tuple(vector), dests=dests,
        above=ViewId(5, 2) if beyond else NO_VIEW, beyond=tuple(beyond),
        after=tuple(sorted(after)),
    ),
    st.integers(0, 7), words, st.binary(max_size=9), st.tuples(words, words),
    st.lists(words, max_size=4), st.none() | st.frozensets(st.integers(0, 7)),
    st.lists(words, max_size=4), NAMES,
)  # fmt: skip


@given(STAMPED)
def test_a_stamped_message_and_its_size_survive_the_wire(message: StampedCast) -> None:
    codec = Daisy.codec(7, 8)
    data = codec.encode(message)
    assert len(data) == message.size
    read = codec.decode(data)
    assert dataclasses.astuple(read) == dataclasses.astuple(message)


@given(st.lists(STAMPED, max_size=3))
def test_stamps_survive_a_view_change(messages: list[StampedCast]) -> None:
    casts = (Cast(1, 2, b"x", dests=frozenset({3})), *messages)
    read = State.decode(State(ViewId(1, 2), casts).encode()).casts
    assert [type(cast) for cast in read] == [type(cast) for cast in casts]
    for cast, sent in zip(read[1:], messages, strict=True):
        assert isinstance(cast, StampedCast)
        assert cast.stamp() == sent.stamp()
        assert (cast.id, cast.payload, cast.dests) == (sent.id, sent.payload, sent.dests)


@given(STAMPED, st.data())
def test_a_stamp_that_is_cut_short_is_refused(message: StampedCast, data: st.DataObject) -> None:
    control = message.encode_control()
    end = data.draw(st.integers(0, 4 * len(message.stamp())))
    with pytest.raises(WireError):
        StampedCast.decode_control(control[:end], 8)


@pytest.mark.parametrize("names", [((9, 1),), ((2, 1), (1, 1)), ((1, 1), (1, 1))])
def test_names_of_nobody_or_out_of_order_are_refused(names: tuple[tuple[int, int], ...]) -> None:
    message = StampedCast(1, 1, after=tuple(MessageId(*name) for name in names))
    with pytest.raises(WireError):
        StampedCast.decode_control(message.encode_control(), 8)
