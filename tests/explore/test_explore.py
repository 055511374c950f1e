"""The search against brute force, and its monitor against the oracle."""

import random
from collections.abc import Iterator
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.explore import choose, explore, make_places
from testbed.explore.diagram import Diagram
from testbed.explore.monitor import Monitor
from testbed.explore.process import Fire, Say
from testbed.explore.recorder import Answers, Destinations
from testbed.explore.replay import Replay
from testbed.protocols import KS, PROTOCOLS, RST, KSPrime, Overlay, Protocol, Timestamp
from testbed.protocols.broken.overlay import Printed
from testbed.protocols.broken.timestamp import Impatient, LateUpdate, NoRescan
from tests.explore import odd_protocols as odd

Action = tuple[int, int, Destinations, Answers]  # sender, receiver (the same: it multicasts to)


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
        (odd.Grouped, 3, 2),
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
    example = odd.example_of(protocol, 3, 2)
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


RANDOMLY = {name: p for name, p in odd.RESTING.items() if name != "broken-echo"}  # it never ends
RANDOMLY |= {"overlay": Overlay, "timestamp": Timestamp, "rst": RST, "ks": KS}
RANDOMLY |= {"amnesiac": odd.Amnesiac, "hasty": odd.Hasty}


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
        (odd.Amnesiac, 2, "process 2 delivers m(1,1) without m(0,1)"),
        (odd.Hasty, 2, "process 2 delivers m(1,1) without m(0,1)"),
        (odd.NewestOnly, 3, "process 1 delivers m(2,1) without m(0,1)"),
        (odd.Stray, 1, "process 0 delivers m(0,1) which was not sent to it"),
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
    assert explore(odd.NewestOnly, 3, 3, subsets=False).verdict == "valid"
    diagram = Diagram(3, odd.example_of(odd.NewestOnly, 3, 3))
    assert diagram.legend()[0] == "a = m(0,1) to 1, b = m(0,2) to 2, c = m(2,1) to 1"
    assert not any(diagram.ends)


def test_groups_are_pairs_in_a_ring_and_a_process_sends_to_its_own() -> None:
    places = make_places(odd.Grouped, 3)
    assert set(places[0].groups) == {frozenset(pair) for pair in ((0, 1), (1, 2), (0, 2))}
    assert len(make_places(odd.Grouped, 5)[0].groups) == 5
    assert make_places(odd.Grouped, 2)[0].groups == (frozenset({0, 1}),)
    assert make_places(RST, 3)[0].groups == ()
    assert {0} == frozenset.intersection(*(g for g in choose(places[0], "groups") if g))
    result = explore(odd.Grouped, 3, 3)
    assert (result.verdict, result.to) == ("valid", "groups")


def test_what_processes_do_at_their_beginning_is_part_of_it() -> None:
    assert explore(odd.Greeting, 2, 1).verdict == "valid"
    result = explore(odd.Greeting, 3, 2)
    assert result.verdict == "valid"
    assert result.found.states > explore(Overlay, 3, 2).found.states


def test_a_beginning_is_drawn_and_may_fail() -> None:
    example = odd.example_of(odd.Deaf, 2, 1)
    assert example.moments[0].did.sends
    drawn = "".join(map(str, Diagram(2, example).lines()))
    assert "◇" in drawn
    example = odd.example_of(odd.Stillborn, 2, 1)
    assert example.wrong.sentence.startswith("process 0 fails at its start: OSError: no cradle")
    assert "!" in "".join(map(str, Diagram(2, example).lines()))


def test_a_busy_protocol_is_left_alone_until_it_is_not() -> None:
    result = explore(odd.Shy, 2, 4)
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
    plain, delayed = explore(Timestamp, 3, 2), explore(odd.Delayed, 3, 2)
    assert delayed.verdict == "valid"
    assert delayed.found.states > plain.found.states


def test_which_timers_are_set_is_part_of_the_state() -> None:
    assert explore(odd.Reminded, 3, 1).verdict == "valid"
    example = odd.example_of(odd.Reminded, 2, 2)
    assert example.wrong.sentence == "process 1 delivers m(0,2) without m(0,1)"
    assert "τ✗b" in "".join(map(str, Diagram(2, example).lines()))


def test_a_limit_leaves_it_unknown() -> None:
    result = explore(Overlay, 3, 4, limit=100)
    assert result.verdict == "unknown"
    assert not result.found.complete
    assert result.found.states <= 100


@pytest.mark.parametrize(
    ("protocol", "messages", "sentence", "circle"),
    [
        (odd.PingPong, 1, "process 1 never delivers m(0,1)", 2),
        (odd.Tired, 3, "process 1 never delivers m(0,3)", 2),
    ],
)
def test_a_protocol_that_goes_on_for_ever_without_delivering_is_not_live(
    protocol: type[Protocol], messages: int, sentence: str, circle: int
) -> None:
    result = explore(protocol, 2, 3)
    example = result.counter_example
    assert example is not None
    assert (result.verdict, result.messages) == ("invalid", messages)
    assert example.wrong.sentence == f"{sentence}, though something happens for ever"
    assert example.circle == circle
    assert example.oracle
    assert not any(m.delivered or m.multicast for m in example.moments[-circle:])
    assert any("∅" in str(line) for line in Diagram(2, example).lines())


def test_a_protocol_that_goes_on_for_ever_and_delivers_is_live() -> None:
    result = explore(odd.Restless, 2, 2)
    assert result.verdict == "valid"
    assert not result.found.exact  # there are circles


def test_an_exception_is_a_fault() -> None:
    example = odd.example_of(odd.Fragile, 2, 3)
    assert example.wrong.sentence.startswith(
        "process 1 fails on receiving m(0,2) from process 0: KeyError: 'two'"
    )
    assert example.verdict is None
    assert "!" in "".join(map(str, Diagram(2, example).lines()))


def test_a_message_out_of_thin_air_is_a_fault() -> None:
    example = odd.example_of(odd.Liar, 2, 1)
    assert example.wrong.sentence.endswith("m(0,6) though nobody has sent it")
    assert example.oracle == ["node 1 delivered m(0,6), which nobody sent"]


def test_progress_is_told_of_each_number_of_messages() -> None:
    told: list[tuple[str, int, int]] = []
    explore(Overlay, 3, 3, progress=lambda *work: told.append(work))
    assert {stage for stage, _, _ in told} == {f"{count} of 3 messages" for count in (1, 2, 3)}
    assert all(0 <= done <= of for stage, done, of in told if stage != "1 of 3 messages")
