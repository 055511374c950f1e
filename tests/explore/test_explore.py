"""The search against brute force, its monitor against the oracle, and what is drawn and printed."""

import argparse
import json
import random
from collections.abc import Hashable, Iterator
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.commands import explore as command
from testbed.errors import UserError
from testbed.explore import choose, explore, make_places
from testbed.explore.channel_contents import ChannelContents
from testbed.explore.diagram import Diagram
from testbed.explore.freeze import freeze
from testbed.explore.monitor import Monitor
from testbed.explore.process import Fire, Processes, Say
from testbed.explore.recorder import Act, Answers, Destinations
from testbed.explore.replay import Replay
from testbed.protocols import (
    KS,
    PROTOCOLS,
    RST,
    Deliver,
    Effects,
    KSPrime,
    Message,
    MessageId,
    Overlay,
    Place,
    Protocol,
    Send,
    SetTimer,
    Timestamp,
)
from testbed.protocols.broken import BROKEN
from testbed.protocols.broken.overlay import Printed
from testbed.protocols.broken.timestamp import Impatient, LateUpdate, NoRescan
from testbed.protocols.ks import Dests, KSLog, KSMessage
from testbed.protocols.rst import MatrixMessage
from testbed.protocols.timestamp import VectorMessage

Action = tuple[int, int, Destinations, Answers]  # sender, receiver (the same: it multicasts to)


class Delayed(Timestamp):
    """Timestamp behind an inbox that is emptied when a timer runs out."""

    name: ClassVar[str] = "delayed"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)
        self.inbox: list[tuple[VectorMessage, int]] = []

    def receive(self, message: VectorMessage, sender: int, now: int) -> Effects:
        self.inbox.append((message, sender))
        yield SetTimer("inbox", 1)

    def timeout(self, timer: Hashable, now: int) -> Effects:
        assert timer == "inbox"
        inbox, self.inbox = self.inbox, []
        for message, sender in inbox:
            yield from super().receive(message, sender, now)


class Reminded(Overlay):
    """Delivers when a timer runs out; nothing but the timer tells that it has not yet."""

    name: ClassVar[str] = "reminded"

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        for effect in super().receive(message, sender, now):
            yield SetTimer(message.id, 1) if isinstance(effect, Deliver) else effect

    def timeout(self, timer: Hashable, now: int) -> Effects:
        assert isinstance(timer, MessageId)
        yield Deliver(Message(*timer))


class Scribbler(Timestamp):
    """Writes on what it sends and on what it has delivered, which others must not notice."""

    name: ClassVar[str] = "scribbler"

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        for effect in super().multicast(payload, destinations, now):
            yield effect
            if not isinstance(effect, Deliver):
                effect.message.vector[:] = 9  # type: ignore[union-attr]

    def deliver(self, message: VectorMessage) -> Effects:
        for effect in super().deliver(message):
            yield effect
            effect.message.vector[:] = 9  # type: ignore[union-attr]


class Mute(Overlay):
    """Keeps everything to itself and counts nothing."""

    name: ClassVar[str] = "mute"

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        yield from ()


class Fragile(Overlay):
    """Fails on the second message of a source."""

    name: ClassVar[str] = "fragile"

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        if message.seq == 2:
            raise KeyError("two")
        yield from super().receive(message, sender, now)


class Liar(Overlay):
    """Delivers a message that nobody sent."""

    name: ClassVar[str] = "liar"

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        yield Deliver(Message(message.source, message.seq + 5))


class PrintedRST(RST):
    """As the papers print it: a delivery does not tell to whom else the message went."""

    name: ClassVar[str] = "printed-rst"

    def learn(self, message: MatrixMessage) -> None:
        np.maximum(self.SENT, message.SENT, out=self.SENT)


class Amnesiac(KS):
    """Takes what is new to its log for something that it has forgotten."""

    name: ClassVar[str] = "amnesiac"

    def learn(self, message: KSMessage) -> None:
        n = self.place.processes
        self.LOG = KSLog([message.seq * (s == message.source) for s in range(n)], [0] * n, {})


class Hasty(KS):
    """Takes a message for delivered at a destination as soon as it is sent there."""

    name: ClassVar[str] = "hasty"

    def propagate(self, dests: Dests) -> tuple[KSLog, list[KSLog]]:
        rest, _ = super().propagate(dests)
        return rest, [rest] * dests.bit_count()


class NewestOnly(KS):
    """Keeps of each sender's messages only the newest in mind."""

    name: ClassVar[str] = "newest-only"

    def learn(self, message: KSMessage) -> None:
        super().learn(message)
        self.LOG = KSLog(self.LOG.newest, self.LOG.dests, {})


class Grouped(RST):
    """RST for a system of groups."""

    name: ClassVar[str] = "grouped"
    takes_subsets: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = True

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        assert destinations in self.place.groups
        yield from super().multicast(payload, destinations, now)


class Stray(Timestamp):
    """Takes every set of destinations for everybody."""

    name: ClassVar[str] = "stray"
    takes_subsets: ClassVar[bool] = True


class Greeting(Overlay):
    """Says hello to the next process, sets a timer, and delivers nothing before both have come."""

    name: ClassVar[str] = "greeting"

    def start(self, now: int) -> Effects:
        self.lacks = {"hello", "alarm"}
        self.inbox: list[tuple[Message, int]] = []
        yield Send(((self.me + 1) % self.place.processes,), Message(self.me, 0))
        yield SetTimer("alarm", 1)

    def timeout(self, timer: Hashable, now: int) -> Effects:
        yield from self.got(str(timer), now)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        if message.seq == 0:
            yield from self.got("hello", now)
        else:
            self.inbox.append((message, sender))
            yield from self.got("", now)

    def got(self, what: str, now: int) -> Effects:
        self.lacks.discard(what)
        while self.inbox and not self.lacks:
            yield from super().receive(*self.inbox.pop(0), now)


class Deaf(Greeting):
    """Waits for something else that nobody says."""

    name: ClassVar[str] = "deaf"

    def start(self, now: int) -> Effects:
        yield from super().start(now)
        self.lacks.add("goodbye")


class Stillborn(Overlay):
    """Fails at once."""

    name: ClassVar[str] = "stillborn"

    def start(self, now: int) -> Effects:
        raise OSError("no cradle")


class Shy(Timestamp):
    """Speaks only once, and is busy ever after."""

    name: ClassVar[str] = "shy"

    def busy(self) -> bool:
        return bool(self.T[self.me])


def to_whom(protocol: type[Protocol]) -> str:
    if protocol.needs_groups:
        return "groups"
    return "sets" if protocol.takes_subsets else "all"


def brute_force(
    protocol: type[Protocol], nodes: int, messages: int, answers: bool
) -> Iterator[Replay]:
    """Every schedule, each played from the beginning, with nothing remembered between them."""
    places = make_places(protocol, nodes)
    destinations = [choose(place, to_whom(protocol)) for place in places]

    def play(actions: list[Action]) -> Replay:
        replay = Replay(protocol, places)
        for sender, peer, to, chosen in actions:
            if sender == peer:
                replay.say(peer, to, chosen)
            else:
                replay.hand_over(sender, peer, answers=chosen)
        return replay

    def extend(actions: list[Action]) -> Iterator[Replay]:
        replay = play(actions)
        left = messages - sum(len(moment.multicast) for moment in replay.moments)
        ended = True
        for sender, peer in product(range(nodes), repeat=2):
            if left if sender == peer else replay.channels[sender, peer]:
                ended = False
                for to in destinations[sender] if sender == peer else [None]:
                    for chosen in choices(actions, sender, peer, to, left - (sender == peer)):
                        yield from extend([*actions, (sender, peer, to, chosen)])
        if ended:
            yield replay

    def choices(
        actions: list[Action], sender: int, peer: int, to: Destinations, left: int
    ) -> Iterator[Answers]:
        chances = play([*actions, (sender, peer, to, ())]).moments[-1].did.chances
        for count in range(min(chances, left) + 1 if answers else 1):
            for which in combinations(range(chances), count):
                for where in product(destinations[peer], repeat=count):
                    yield tuple(zip(which, where, strict=True))

    return extend([])


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize(
    ("protocol", "nodes", "messages"),
    [
        (Timestamp, 2, 3),
        (Timestamp, 3, 2),
        (Overlay, 2, 3),
        (Overlay, 3, 1),
        (Printed, 2, 3),
        (RST, 3, 1),
        (KS, 2, 2),
        (Grouped, 3, 2),
    ],
)
def test_the_search_covers_as_many_schedules_as_there_are(
    protocol: type[Protocol], nodes: int, messages: int, answers: bool
) -> None:
    found = explore(protocol, nodes, messages, answers=answers).found
    replays = list(brute_force(protocol, nodes, messages, answers))
    assert found.complete
    assert found.exact
    assert found.schedules == len(replays)
    assert all(replay.judge().ok for replay in replays)


@pytest.mark.parametrize("protocol", [Impatient, LateUpdate, NoRescan])
def test_no_schedule_is_shorter_than_the_counter_example(protocol: type[Protocol]) -> None:
    example = explore(protocol, 3, 2).counter_example
    assert example is not None
    wrong = [r for r in brute_force(protocol, 3, 2, True) if r.judge().verdict == "invalid"]
    assert wrong
    shortest = min(first_mistake(replay, 3, 2) for replay in wrong)
    multicasts = sum(len(moment.multicast) for moment in example.moments)
    handed_over = sum(m.received is not None for m in example.moments[: example.at + 1])
    assert multicasts + handed_over == shortest


def first_mistake(replay: Replay, nodes: int, messages: int) -> int:
    """How many multicasts and hand-overs it took."""
    monitor = Monitor(nodes, messages)
    number, length = monitor.initial, 0
    for moment in replay.moments:
        length += len(moment.multicast) + (moment.received is not None)
        number, mistake = monitor.step(number, moment.process, tuple(moment.did.events))
        if mistake:
            return length
    assert monitor.lost(number)
    return length


RESTING = {name: p for name, p in BROKEN.items() if p.rests}
RANDOMLY = {name: p for name, p in RESTING.items() if name != "broken-echo"}  # it never ends
RANDOMLY |= {"overlay": Overlay, "timestamp": Timestamp, "rst": RST, "ks": KS}
RANDOMLY |= {"printed-rst": PrintedRST, "amnesiac": Amnesiac, "hasty": Hasty}


@settings(max_examples=200)
@given(
    name=st.sampled_from(sorted(RANDOMLY)),
    nodes=st.integers(2, 4),
    fifo=st.booleans(),
    seed=st.integers(),
)
def test_the_monitor_and_the_oracle_agree(name: str, nodes: int, fifo: bool, seed: int) -> None:
    messages, rng = 6, random.Random(seed)
    replay = play_at_random(RANDOMLY[name], nodes, messages, fifo, rng)
    monitor = Monitor(nodes, messages)
    number, mistakes = monitor.initial, 0
    for moment in replay.moments:
        number, mistake = monitor.step(number, moment.process, tuple(moment.did.events))
        mistakes += mistake is not None
    wrong = mistakes > 0 or monitor.lost(number) is not None
    assert replay.judge().verdict == ("invalid" if wrong else "valid")


def play_at_random(
    protocol: type[Protocol], nodes: int, messages: int, fifo: bool, rng: random.Random
) -> Replay:
    places = make_places(protocol, nodes)
    replay = Replay(protocol, places)
    left = messages
    for _ in range(15 * messages):
        busy = [ends for ends, queue in replay.channels.items() if queue]
        if left and rng.random() < 0.3:
            process = rng.randrange(nodes)
            replay.say(process, rng.choice(choose(places[process], to_whom(protocol))))
        elif busy:
            ends = rng.choice(busy)
            place = 0 if fifo else rng.randrange(len(replay.channels[ends]))
            answer = 0, rng.choice(choose(places[ends[1]], to_whom(protocol)))
            replay.hand_over(*ends, place, (answer,) if left and rng.random() < 0.3 else ())
        left = messages - sum(len(moment.multicast) for moment in replay.moments)
    replay.finish()
    return replay


@pytest.mark.parametrize("protocol", [Timestamp, Overlay])
def test_the_protocols_are_right_whatever_happens_to_three_messages(
    protocol: type[Protocol],
) -> None:
    result = explore(protocol, 3, 3)
    assert result.verdict == "valid"
    assert result.found.exact


@pytest.mark.parametrize("protocol", [RST, KS, KSPrime])
def test_any_sets_of_three_processes_are_right_for_two_messages(protocol: type[Protocol]) -> None:
    result = explore(protocol, 3, 2, fifo=False)
    assert (result.verdict, result.to) == ("valid", "sets")
    assert result.found.exact
    alone = explore(protocol, 3, 2, fifo=False, subsets=False)
    assert (alone.verdict, alone.to) == ("valid", "all")
    assert result.found.states > 5 * alone.found.states


@pytest.mark.parametrize("name", [name for name, p in PROTOCOLS.items() if p.needs_groups])
def test_protocols_for_groups_are_right_in_the_triangle(name: str) -> None:
    result = explore(PROTOCOLS[name], 3, 3)
    assert (result.verdict, result.to) == ("valid", "groups")


def test_ks_is_right_whatever_set_each_of_three_messages_goes_to() -> None:
    result = explore(KS, 3, 3, answers=False)
    assert result.verdict == "valid"
    assert result.found.exact


@pytest.mark.parametrize(
    ("protocol", "messages", "sentence"),
    [
        (PrintedRST, 2, "process 2 delivers m(1,1) without m(0,1)"),
        (Amnesiac, 2, "process 2 delivers m(1,1) without m(0,1)"),
        (Hasty, 2, "process 2 delivers m(1,1) without m(0,1)"),
        (NewestOnly, 3, "process 1 delivers m(2,1) without m(0,1)"),
        (Stray, 1, "process 0 delivers m(0,1) which was not sent to it"),
    ],
)
def test_mutants_are_caught_with_messages_to_any_set(
    protocol: type[Protocol], messages: int, sentence: str
) -> None:
    result = explore(protocol, 3, 3)
    example = result.counter_example
    assert example is not None
    assert result.messages == messages
    assert example.wrong.sentence == sentence
    assert example.oracle


def test_some_mistakes_show_only_if_messages_go_to_some() -> None:
    assert explore(NewestOnly, 3, 3, subsets=False).verdict == "valid"
    example = explore(NewestOnly, 3, 3).counter_example
    assert example is not None
    diagram = Diagram(3, example)
    assert diagram.legend()[0] == "a = m(0,1) to 1, b = m(0,2) to 2, c = m(2,1) to 1"
    assert not any(diagram.ends)


def test_groups_are_pairs_in_a_ring_and_a_process_sends_to_its_own() -> None:
    places = make_places(Grouped, 3)
    assert set(places[0].groups) == {frozenset(pair) for pair in ((0, 1), (1, 2), (0, 2))}
    assert len(make_places(Grouped, 5)[0].groups) == 5
    assert make_places(Grouped, 2)[0].groups == (frozenset({0, 1}),)
    assert make_places(RST, 3)[0].groups == ()
    assert {0} == frozenset.intersection(*(g for g in choose(places[0], "groups") if g))
    result = explore(Grouped, 3, 3)
    assert (result.verdict, result.to) == ("valid", "groups")


def test_what_processes_do_at_their_beginning_is_part_of_it() -> None:
    assert explore(Greeting, 2, 1).verdict == "valid"
    result = explore(Greeting, 3, 2)
    assert result.verdict == "valid"
    assert result.found.states > explore(Overlay, 3, 2).found.states


def test_a_beginning_is_drawn_and_may_fail() -> None:
    example = explore(Deaf, 2, 1).counter_example
    assert example is not None
    assert example.moments[0].did.sends
    drawn = "".join(map(str, Diagram(2, example).lines()))
    assert "◇" in drawn
    example = explore(Stillborn, 2, 1).counter_example
    assert example is not None
    assert example.wrong.sentence == "process 0 fails: OSError: no cradle"
    assert "!" in "".join(map(str, Diagram(2, example).lines()))


def test_a_busy_protocol_is_left_alone_until_it_is_not() -> None:
    result = explore(Shy, 2, 4)
    assert result.verdict == "valid"
    assert result.found.levels == 4  # each of the two multicasts once, and hears the other


def test_a_timer_of_any_name_is_not_taken_for_something_else() -> None:
    pair = frozenset({0, 1})
    assert len({Fire(None), Say(None), Fire(pair), Say(pair)}) == 4


def test_channels_that_are_not_fifo_hurt_overlay_but_not_timestamp() -> None:
    result = explore(Overlay, 2, 3, fifo=False)
    assert result.verdict == "invalid"
    assert result.messages == 2
    assert explore(Timestamp, 3, 2, fifo=False).verdict == "valid"
    assert explore(Timestamp, 2, 3, fifo=False).verdict == "valid"


def test_timers_run_out_at_any_moment() -> None:
    plain, delayed = explore(Timestamp, 3, 2), explore(Delayed, 3, 2)
    assert delayed.verdict == "valid"
    assert delayed.found.states > plain.found.states


def test_which_timers_are_set_is_part_of_the_state() -> None:
    assert explore(Reminded, 3, 1).verdict == "valid"
    result = explore(Reminded, 2, 2)
    assert result.counter_example is not None
    assert result.counter_example.wrong.sentence == "process 1 delivers m(0,2) without m(0,1)"
    assert "τ✗b" in "".join(map(str, Diagram(2, result.counter_example).lines()))


def test_a_limit_leaves_it_unknown() -> None:
    result = explore(Overlay, 3, 4, limit=100)
    assert result.verdict == "unknown"
    assert not result.found.complete
    assert result.found.states <= 100


def test_an_exception_is_a_fault() -> None:
    result = explore(Fragile, 2, 3)
    assert result.counter_example is not None
    assert result.counter_example.wrong.sentence == "process 1 fails: KeyError: 'two'"
    assert result.counter_example.verdict is None
    assert "!" in "".join(map(str, Diagram(2, result.counter_example).lines()))


def test_a_message_out_of_thin_air_is_a_fault() -> None:
    result = explore(Liar, 2, 1)
    assert result.counter_example is not None
    assert result.counter_example.wrong.sentence.endswith("m(0,6) though nobody has sent it")
    assert result.counter_example.oracle == ["node 1 delivered m(0,6), which nobody sent"]


def test_progress_is_told_of_each_number_of_messages() -> None:
    told: list[tuple[str, int, int]] = []
    explore(Overlay, 3, 3, progress=lambda *work: told.append(work))
    assert {stage for stage, _, _ in told} == {f"{count} of 3 messages" for count in (1, 2, 3)}
    assert all(0 <= done <= of for stage, done, of in told if stage != "1 of 3 messages")


# what the states are made of


def test_frozen_values_are_equal_only_if_the_values_will_behave_the_same() -> None:
    ones = np.ones(2, np.int64)
    same = [ones, {"a": [1, {2}]}, MessageId(0, 1), random.Random(3), Message(0, 1, b"x")]
    again = [ones.copy(), {"a": [1, {2}]}, MessageId(0, 1), random.Random(3), Message(0, 1, b"x")]
    for one, other in zip(same, again, strict=True):
        assert freeze(one) == freeze(other)
        assert isinstance(hash(freeze(one)), int)
    for one, other in [
        (ones, ones + 1),
        (ones, ones.astype(np.int32)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1], (1,)),
        (1, True),
        (random.Random(3), random.Random(4)),
        (Message(0, 1), Message(0, 2)),
    ]:
        assert freeze(one) != freeze(other)


def test_a_value_that_contains_itself_can_be_frozen() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert hash(freeze(loop)) == hash(freeze(loop))


def test_fifo_channels_have_one_head_and_others_have_many() -> None:
    for fifo, first in ((True, [5]), (False, [5, 7])):
        channels = ChannelContents(fifo)
        channel = 0
        for message in (5, 7, 5):
            channel = channels.add(channel, message)
        assert sorted(message for message, _ in channels.heads(channel)) == first
    assert channels.add(channels.add(0, 5), 7) == channels.add(channels.add(0, 7), 5)


def test_the_monitor_forgets_what_was_delivered_everywhere() -> None:
    """Whoever came first, in the end all is the same."""
    monitor, one, other = Monitor(2, 1), MessageId(0, 1), MessageId(1, 1)
    say = [(Act("send", name), Act("deliver", name)) for name in (one, other)]
    hear = [(Act("deliver", name),) for name in (one, other)]
    related = [(0, say[0]), (1, hear[0]), (1, say[1]), (0, hear[1])]
    apart = [(0, say[0]), (1, say[1]), (1, hear[0]), (0, hear[1])]
    numbers = []
    for history in (related, apart):
        number = monitor.initial
        for process, events in history:
            number, mistake = monitor.step(number, process, events)
            assert mistake is None
        numbers.append(number)
    assert numbers[0] == numbers[1]


def test_whoever_sends_without_delivering_to_itself_still_knows_what_it_sent() -> None:
    monitor, first, second = Monitor(2, 2), MessageId(0, 1), MessageId(0, 2)
    number, mistake = monitor.step(monitor.initial, 0, (Act("send", first), Act("send", second)))
    assert mistake is None
    _, mistake = monitor.step(number, 1, (Act("deliver", second),))
    assert mistake is not None
    assert mistake.sentence == "process 1 delivers m(0,2) without m(0,1)"


def test_every_copy_is_the_receivers_own() -> None:
    assert explore(Scribbler, 3, 2).verdict == "valid"


def test_how_much_was_multicast_is_part_of_the_state() -> None:
    processes = Processes(Mute, make_places(Mute, 2), [[None]] * 2)
    (once,) = processes.outcomes(processes.initial[0], Say(None), 2)
    (twice,) = processes.outcomes(once.state, Say(None), 1)
    sends = [Act("send", MessageId(0, number)) for number in (1, 2)]
    assert [*once.events, *twice.events] == sends


# what people see

TRIANGLE = """\
process 0 ━━●a━━━━━━━━━━━━━━━━━━━━━
             ├──┐
             └──┼─────────────┐
process 1 ━━━━━━▼a✓━━●b━━━━━━━┿━━━━
                      └──┐    │
process 2 ━━━━━━━━━━━━━━━▼b✗━━▼a✓━━"""


def test_the_relay_triangle_is_drawn() -> None:
    example = explore(Impatient, 3, 4).counter_example
    assert example is not None
    diagram = Diagram(3, example)
    assert "\n".join(str(line).rstrip() for line in diagram.lines()) == TRIANGLE
    letters, signs = diagram.legend()
    assert letters == "a = m(0,1), b = m(1,1)"
    assert "✗ delivered wrongly" in signs
    assert "never" not in signs


@pytest.mark.parametrize("name", sorted(RESTING))
def test_a_diagram_fits_the_terminal(name: str) -> None:
    example = explore(BROKEN[name], 3, 3).counter_example
    assert example is not None
    assert all(len(line) <= 100 for line in Diagram(3, example).lines(100))
    narrow = list(Diagram(3, example).lines(36))
    assert all(len(line) <= 36 for line in narrow)
    assert sum(str(line).startswith("process 0") for line in narrow) >= 1


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["explore", *arguments])
    return int(options.command(options))


def test_the_command_says_how_much_was_covered(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--protocol", "timestamp", "--nodes", "2", "--messages", "3") == 0
    out = capsys.readouterr().out
    assert "timestamp: 2 processes, up to 3 messages, FIFO channels" in out
    assert "valid: complete; all 100 schedules are right (49 states, 92 steps)" in out


def test_the_command_says_where_messages_go(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--protocol", "rst", "--messages", "1", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["to"], result["schedules"]) == ("sets", 18)
    assert run("--protocol", "rst", "--messages", "1") == 0
    assert "rst: 3 processes, 1 message to any others or to all, FIFO" in capsys.readouterr().out
    assert run("--protocol", "rst", "--messages", "1", "--no-subsets") == 0
    assert "rst: 3 processes, 1 message, FIFO" in capsys.readouterr().out


def test_json_names_the_destinations() -> None:
    result = command.to_json(explore(NewestOnly, 3, 3))
    events = [event for m in result["counter_example"]["moments"] for event in m["events"]]
    assert [event for event in events if event[0] == "send"] == [
        ["send", 0, 1, [1]],
        ["send", 0, 2, [2]],
        ["send", 2, 1, [1]],
    ]


def test_the_command_draws_a_counter_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--protocol", "broken-impatient") == 1
    out = capsys.readouterr().out
    assert "invalid: process 2 delivers m(1,1) without m(0,1)" in out
    assert TRIANGLE.splitlines()[-1] in out
    assert "the oracle: node 2 delivered m(1,1) before m(0,1), but" in out


def test_the_command_admits_what_it_has_not_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--protocol", "overlay", "--limit", "500") == 2
    assert "unknown: incomplete" in capsys.readouterr().out


def test_the_command_speaks_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--protocol", "broken-merge", "--no-answers", "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["protocol"], result["verdict"]) == ("broken-merge", "invalid")
    assert not result["answers"]
    example = result["counter_example"]
    assert example["moments"][0]["events"] == [["send", 0, 1, None], ["deliver", 0, 1]]
    assert example["verdict"]["verdict"] == "invalid"
    assert example["oracle"][0].startswith("node 2 delivered m(1,1) but never m(0,1)")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--protocol", "overly"], "protocol overly: there is no such protocol; did you mean"),
        (["--protocol", "?"], "known are"),
        (["--protocol", "overlay", "--nodes", "1"], "--nodes 1: must be at least 2"),
        (["--protocol", "overlay", "--messages", "0"], "--messages 0: must be at least 1"),
        (["--protocol", "overlay", "--limit", "0"], "--limit 0: must be at least 1"),
    ],
)
def test_bad_input_is_told_in_a_sentence(arguments: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        run(*arguments)
    assert sentence in str(error.value)


def test_a_protocol_that_may_lose_messages_is_not_explored() -> None:
    with pytest.raises(UserError, match="cluster may lose messages"):
        command.command(argparse.Namespace(protocol="cluster"))
