"""What the members of a group say to each other, and its encoding."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.protocols import Message, MessageId
from testbed.protocols.daisy import Daisy
from testbed.protocols.daisy.path import Path
from testbed.protocols.groups.agreed import (
    PART_BYTES,
    Flushed,
    HeldCast,
    Install,
    Label,
    Reshape,
    merged,
    parts_of,
)
from testbed.protocols.groups.flush import FLUSHED, INSTALL, Fetch, Flush, Missing, Part
from testbed.protocols.groups.laden_cast import LadenCast
from testbed.protocols.groups.messages import (
    NO_VIEW,
    Cast,
    Expelled,
    Join,
    Leave,
    Report,
    Silence,
)
from testbed.protocols.groups.packing import ENTRY, Pack
from testbed.protocols.groups.passed import Passed
from testbed.protocols.groups.stamped_cast import StampedCast
from testbed.protocols.groups.view import Member, View, ViewId
from testbed.protocols.wire import HEADER, WireError

PROCESSES = 9
words = st.integers(0, 2**32 - 1)
processes = st.integers(0, PROCESSES - 1)
some = st.frozensets(processes)
vectors = st.lists(words, max_size=6).map(tuple)
views = st.builds(ViewId, words, words)
rosters = st.frozensets(processes, min_size=1)
backings = st.integers(0, 2**64 - 1)
names = st.builds(MessageId, processes, words)
labels = st.builds(Label, names, words)
epochs = st.dictionaries(processes, words, max_size=4).map(lambda d: tuple(sorted(d.items())))
members = st.builds(Member, processes, backings, rosters, words, some, epochs)
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
    epochs=epochs,
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
        leads=draw(st.booleans()),
        everywhere=draw(st.none() | st.tuples(*[words] * size)),
        above=tuple(draw(some)),
        outside=draw(some),
        epochs=draw(epochs),
    )


@st.composite
def joins(draw: st.DrawFn) -> Join:
    roster = draw(rosters)
    return Join(
        draw(processes),
        draw(words),
        backing=draw(backings),
        of=draw(words),
        how=draw(st.integers(0, 2)),
        roster=roster,
        away=draw(st.frozensets(st.sampled_from(sorted(roster)))),
        epochs=tuple((p, epoch) for p, epoch in draw(epochs) if p in roster),
    )


@st.composite
def laden(draw: st.DrawFn) -> LadenCast:
    cast = draw(casts)
    attached = tuple(draw(st.lists(casts, max_size=3)))
    return LadenCast(**dict(zip(cast_fields, fields(cast), strict=True)), attached=attached)


cast_fields = [f.name for f in dataclasses.fields(Cast)]
steps = st.lists(st.tuples(words, some), max_size=3).map(tuple)
kinds_of_parts = st.sampled_from([FLUSHED, INSTALL])
plain = st.one_of(
    casts,
    laden(),
    reports(),
    joins(),
    st.builds(Silence, processes, words),
    st.builds(Leave, processes, words, backing=backings, epoch=words, roster=rosters),
    st.builds(Expelled, processes, words, view=views),
    st.builds(Flush, processes, words, view=views, joins=st.booleans()),
    st.builds(
        Part,
        processes,
        words,
        view=views,
        what=kinds_of_parts,
        index=st.just(3),
        count=st.integers(4, 9),
        data=st.binary(max_size=30),
    ),
    st.builds(Missing, processes, words, view=views, what=kinds_of_parts, parts=vectors),
    st.builds(Fetch, processes, words, names=st.lists(names, max_size=4).map(tuple)),
    st.builds(Path, processes, words, contact=processes, steps=steps),
)
inside = plain.filter(lambda message: not isinstance(message, Path))  # of one group
messages = st.one_of(
    plain,
    st.builds(
        Passed,
        processes,
        words,
        sender=processes,
        to=processes,
        inner=inside,
        unheard=st.booleans(),
    ),
    st.builds(Pack.of, processes, st.lists(inside, min_size=2, max_size=4)),
)


def fields(message: Any) -> tuple[Any, ...]:
    values = (getattr(message, f.name) for f in dataclasses.fields(message))
    if isinstance(message, Pack):
        return message.payload, *((type(m), *fields(m)) for m in message.messages())
    return tuple(map(comparable, values))


def comparable(value: Any) -> Any:
    if isinstance(value, Message):
        return type(value), *fields(value)
    whole = isinstance(value, tuple) and not isinstance(value, ViewId)
    return tuple(map(comparable, value)) if whole else value


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
    assert decoded.carried == message.carried


@given(plain, st.integers(0, 40))
def test_control_information_that_is_cut_short_is_refused_or_means_something_shorter(
    message: Any, keep: int
) -> None:
    control = message.encode_control()[:keep]
    try:
        decoded = type(message)(0, 0, **type(message).decode_control(control, PROCESSES))
    except WireError:
        return
    assert decoded.encode_control() == control


def test_a_message_that_is_passed_on_and_cut_short_is_refused() -> None:
    inner = Leave(0, 0, backing=1 << 40, epoch=1, roster=frozenset({0, 1}))
    control = Passed(0, 0, sender=0, to=1, inner=inner).encode_control()
    for end in range(len(control)):
        with pytest.raises(WireError):
            Passed.decode_control(control[:end], PROCESSES)


def test_a_pack_that_is_cut_short_is_refused_or_shorter_and_one_without_its_payload_is_empty() -> (
    None
):
    inner = [Leave(0, 0, backing=1 << 40, epoch=1, roster=frozenset({0, 1})), Silence(1, 2)]
    control = Pack.of(0, inner).encode_control()
    whole = ENTRY.size + inner[0].control_size
    for end in {*range(1, len(control))} - {whole}:
        with pytest.raises(WireError):
            Pack.decode_control(control[:end], PROCESSES)
    assert len(Pack.decode_control(control[:whole], PROCESSES)["parts"]) == 1
    cast = Cast(1, 1, b"payload", vector=(1,))
    assert [*Pack(0, 0, b"pay", parts=Pack.of(0, [cast]).parts).messages()] == []


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Cast, [1, 1, 2 << 2, 5, 1]),  # half a vector
        (Cast, [1, 1, 1 << 2 | 1, 5, 1, 3]),  # to all, and to 3
        (Cast, [1, 1, 2, 5, 0]),  # epochs, and none
        (Cast, [1, 1, 2, 5, 2, 3, 2, 4]),  # epochs, and too few
        (Cast, [1, 1, 2, 5, 2, 4, 2, 3, 2]),  # epochs, not in order
        (Cast, [1, 1, 2, 5]),
        (Cast, [1, 1, 0, 5, 3, 2]),  # not in order
        (Cast, [1, 1, 0, 5, PROCESSES]),
        (Report, [1, 1, 0, 2 << 2, 3, 1, 1, 1, 1]),  # half of what was released
        (Report, [1, 1, 0, 1 << 2 | 2, 0, 1]),  # what all have delivered is missing
        (Report, [1, 1, 0, 0, 0, 2, 4, 4]),  # the same process above twice
        (Report, [1, 1, 0, 0, 0, 2, 4]),  # one above, and two announced
        (Report, [1, 1, 0, 0, 0, 0, 4, 3]),  # who is away from other groups, not in order
        (Report, [1, 1, 0, 0, 0]),
        (Join, [0, 1, 0, 0, 0]),
        (Join, [0, 1, 0, 3, 0, 0, 3]),  # no way to join
        (Join, [0, 1, 0, 0, 1, 3, 0, 4]),  # away, and not in the roster
        (Join, [0, 1, 0, 0, 3, 3, 4]),  # too few are away
        (Join, [0, 1, 0, 0, 0, 0, 4, 3]),  # not in order
        (Join, [0, 1, 0, 0, 0, 1, 5, 2, 4]),  # the epoch of one who is not in the roster
        (Join, [0, 1, 0, 0, 0, 2, 4, 2, 4]),  # too few epochs
        (Leave, [0, 1, 1, 0, 3, 2]),  # not in order
        (Leave, [0, 1, 1, 2, 3]),  # neither gone nor there
        (Leave, [0, 1, 1]),
        (Flush, [1]),
        (Flush, [1, 1]),
        (Flush, [1, 1, 2]),
        (Flush, [1, 1, 0, 0]),
        (Expelled, [1, 2, 3]),
        (Part, [1, 1, 2, 0, 1]),
        (Part, [1, 1, 0, 1, 1]),
        (Missing, [1, 1]),
        (Missing, [1, 1, 2, 0]),  # parts of what there is not
        (Fetch, [1]),
        (Fetch, [PROCESSES, 1]),
        (LadenCast, [1, 3, 1]),  # an attached message, cut short
        (LadenCast, [1, 3, 1, 0, 0, 16, 4, 1, 1, 0, 5]),  # and its payload
        (LadenCast, [1, PROCESSES, 1, 0, 0, 16, 0, 1, 1, 0, 5, 1, 1, 0, 5]),
        (LadenCast, [0, 1, 1, 0]),
        (Path, []),
        (Path, [PROCESSES]),
        (Path, [1, 8192]),  # a group, and not who is below it
        (Path, [1, 8192, 2, 3]),
        (Path, [1, 8192, 2, 4, 3]),  # not in order
        (Passed, [1, 2]),
        (Passed, [1, 2, 12, 1, 1, 0, 0, 0]),  # an unknown kind
        (Passed, [1, 2, Passed.kind, 1, 1, 0, 0, 0]),  # passed on twice
        (Passed, [1, PROCESSES, Silence.kind, 1, 1, 0, 0, 0]),
        (Passed, [1, 2, Expelled.kind, 1, 1, 0, 0, 8, 1]),  # a view that is cut short
    ],
)
def test_malformed_control_information_is_refused(kind: Any, words: list[int]) -> None:
    control = b"".join(word.to_bytes(4, "big") for word in words)
    with pytest.raises(WireError):
        kind.decode_control(control, PROCESSES)
    with pytest.raises(WireError):
        kind.decode_control(control[:7] if kind in (Part, Passed) else control + b"x", PROCESSES)


@given(views, st.lists(labels, max_size=80))
def test_an_answer_to_a_flush_in_parts_is_put_together_again(
    view: ViewId, held: list[Label]
) -> None:
    answer = Flushed(view, tuple(held))
    parts = parts_of(answer.encode(), view, FLUSHED, 0, 0)
    assert [part.index for part in parts] == list(range(parts[0].count))
    assert {part.view for part in parts} == {view}
    assert Flushed.decode(b"".join(part.data for part in parts)) == answer


@given(
    st.lists(members, min_size=1, max_size=4),
    st.lists(members, max_size=3),
    st.booleans(),
    st.lists(labels, max_size=4),
)
def test_an_install_is_decoded_as_it_was_encoded(
    inside: list[Member], absent: list[Member], weak: bool, carried: list[Label]
) -> None:
    view = View(ViewId(3, 1), tuple(inside), tuple(absent), weak)
    reshape = Reshape(7, tuple(inside), (1, 2)) if weak else None
    install = Install(view, (MessageId(3, 7),), tuple(carried), reshape)
    assert Install.decode(install.encode()) == install
    with pytest.raises(WireError):
        Install.decode(install.encode()[:-1])
    with pytest.raises(WireError):
        Install.decode(install.encode() + b"x")


def test_no_part_is_longer_than_a_frame() -> None:
    parts = parts_of(bytes(10_000), ViewId(1, 1), INSTALL, 0, 0)
    assert max(part.size for part in parts) == HEADER.size + 20 + PART_BYTES < 1400
    assert sum(len(part.data) for part in parts) == 10_000


# answers to a flush


@given(
    st.lists(words, min_size=1, max_size=5),
    st.lists(names),
    st.lists(labels, max_size=3),
    st.lists(members, max_size=3),
    st.data(),
)
def test_an_answer_to_a_flush_is_read_as_it_was_written(
    firm: list[int],
    seen: list[MessageId],
    delivered: list[Label],
    absent: list[Member],
    data: st.DataObject,
) -> None:
    places = st.builds(HeldCast, st.integers(0, len(firm) - 1), words, labels)
    held = tuple(data.draw(st.lists(places, max_size=4)))
    answer = Flushed(ViewId(5, 1), tuple(delivered), tuple(firm), held, tuple(seen), tuple(absent))
    encoding = answer.encode()
    assert Flushed.decode(encoding) == answer
    for cut in range(4, len(encoding), 4):
        with pytest.raises(WireError):
            Flushed.decode(encoding[:cut])
    with pytest.raises(WireError):
        Flushed.decode(encoding + bytes(4))


def test_a_held_cast_of_nobody_in_the_view_is_refused() -> None:
    label = Label.of(Cast(1, 1, dests=frozenset({2})))
    with pytest.raises(WireError):
        Flushed.decode(Flushed(ViewId(), (), (1, 1), (HeldCast(2, 1, label),)).encode())


@given(st.lists(labels, max_size=8))
def test_all_that_members_have_is_merged_in_the_order_of_logical_times(had: list[Label]) -> None:
    union = merged(had)
    assert [(label.time, label.id) for label in union] == sorted(
        {label.id: (label.time, label.id) for label in had}.values()
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
