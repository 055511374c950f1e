"""KS and KS': the paper's example, causal order, and logs that hold what is necessary and no more."""

import pickle
import random
import struct
from collections.abc import Callable
from copy import deepcopy

import pytest

from testbed.explore.freeze import freeze
from testbed.protocols import MessageId, WireError
from testbed.protocols.ks import KS, KSMessage
from testbed.protocols.ks_log import Dests, KSLog
from testbed.protocols.ks_prime import KSPrime, KSPrimeMessage
from testbed.protocols.rst import RST
from tests.protocols.executions import Execution, known, make_log, violations

BOTH = pytest.mark.parametrize("protocol", [KS, KSPrime])

# Fig. 1. The paper numbers a process's events, this counts its multicasts; process 0 is idle.
M51, M52 = MessageId(5, 1), MessageId(5, 2)
M42, M43 = MessageId(4, 1), MessageId(4, 2)
M22, M23 = MessageId(2, 1), MessageId(2, 2)
M33, M62 = MessageId(3, 1), MessageId(6, 1)
NONE: set[int] = set()

# process, message, its destinations if the event is its send, the log after the event
FIGURE_1: list[tuple[int, MessageId, set[int] | None, dict[MessageId, set[int]]]] = [
    (5, M51, {4, 6}, {M51: {4, 6}}),
    (4, M51, None, {M51: {6}}),
    (6, M51, None, {M51: {4}}),
    (4, M42, {2, 3}, {M51: {6}, M42: {2, 3}}),
    (2, M42, None, {M51: {6}, M42: {3}}),
    (3, M42, None, {M51: {6}, M42: {2}}),
    (2, M22, {1}, {M51: {6}, M42: {3}, M22: {1}}),
    (2, M23, {1}, {M51: {6}, M42: {3}, M23: {1}}),
    (6, M62, {1}, {M51: {4}, M62: {1}}),
    (4, M43, {3, 6}, {M51: NONE, M42: {2}, M43: {3, 6}}),
    (1, M22, None, {M51: {6}, M42: {3}, M22: NONE}),
    (1, M62, None, {M51: NONE, M42: {3}, M22: NONE, M62: NONE}),
    (1, M23, None, {M51: NONE, M42: {3}, M23: NONE, M62: NONE}),
    (3, M43, None, {M51: NONE, M42: {2}, M43: {6}}),
    (3, M33, {2}, {M51: NONE, M43: {6}, M33: {2}}),
    (2, M33, None, {M51: NONE, M43: {6}, M23: {1}, M33: NONE}),
    (6, M43, None, {M51: NONE, M42: {2}, M43: {3}, M62: {1}}),
    (5, M52, {6}, {M51: {4}, M52: {6}}),
    (6, M52, None, {M52: NONE, M42: {2}, M43: {3}, M62: {1}}),
]
CARRIED = {  # on the copy of a message for a process
    (M42, 2): {M51: {6}},
    (M43, 6): {M51: {6}, M42: {2}},
    (M43, 3): {M51: NONE, M42: {2, 3}},
    (M22, 1): {M51: {6}, M42: {3}},
    (M23, 1): {M51: {6}, M42: {3}, M22: {1}},
    (M62, 1): {M51: {4}},
    (M33, 2): {M51: NONE, M42: {2}, M43: {6}},
    (M52, 6): {M51: {4, 6}},
}


@BOTH
def test_the_papers_figure_1_event_by_event(protocol: type[KS]) -> None:
    run = Execution(protocol, 7, wire=True)
    carried: dict[tuple[MessageId, int], dict[MessageId, set[int]]] = {}
    for process, name, dests, log in FIGURE_1:
        if dests is not None:
            assert run.say(process, dests) == name
            carried |= {(c.message.id, c.peer): known(c.message.olog) for c in run.copies}
        else:
            run.pass_on_message(name, process)
        assert known(run.protocols[process].LOG) == log
    assert {copy: carried[copy] for copy in CARRIED} == CARRIED
    assert not run.log.held
    assert run.check().ok


@BOTH
def test_in_figure_1_m43_waits_at_p6_for_m51(protocol: type[KS]) -> None:
    run = Execution(protocol, 7)
    run.say(5, frozenset([4, 6]))
    run.pass_on_message(M51, 4)
    run.say(4, frozenset([2, 3]))
    run.say(4, frozenset([3, 6]))
    run.pass_on_message(M43, 6)
    assert run.log.held == [(6, M43, M51)]
    run.pass_on_message(M51, 6)
    assert run.delivered(6) == [M51, M43]


def test_rst_and_both_encodings_of_ks_deliver_the_same_at_the_same_time() -> None:
    """All three hold back only what they must; the messages of KS go through their encodings."""
    for seed in range(300):
        n = 2 + seed % 5
        rst = Execution(RST, n, seed)
        ks, prime = Execution(KS, n, seed, wire=True), Execution(KSPrime, n, seed, wire=True)
        for steps in zip(rst.shuffle(10), ks.shuffle(10), prime.shuffle(10), strict=True):
            assert len(set(steps)) == 1
            me = steps[0]
            events = [run.log.events[me] for run in (rst, ks, prime)]
            assert sorted(events[0]) == sorted(events[1])  # any order within a step
            assert events[1] == events[2]
            assert known(ks.protocols[me].LOG) == known(prime.protocols[me].LOG)
        assert prime.check().ok


def test_a_log_holds_exactly_what_neither_propagation_constraint_lets_it_forget() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        run = Execution(KS, rng.randint(2, 5), seed)
        for me in run.shuffle(9):
            assert known(run.protocols[me].LOG) == run.graph.necessary_at(me)
            newest = MessageId(me, run.nodes[me].multicasts)
            for copy in run.copies:
                if copy.message.id == newest:
                    necessary = run.graph.necessary_on(newest, copy.peer)
                    assert known(copy.message.olog) == necessary


# Mutants: less forgetful ones are right but larger, and wrong merges are caught


class WithoutConstraintOne(KS):
    """Does not forget that messages have been delivered to itself."""

    def learn(self, message: KSMessage) -> None:
        self.others = -1
        super().learn(message)


class WithoutConstraintTwo(KS):
    """Does not forget what a later message to the same destination makes obsolete."""

    def propagate(self, dests: Dests) -> tuple[KSLog, list[KSLog]]:
        return self.LOG, [self.LOG] * dests.bit_count()


class WrongMerge(KS):
    """Combines the destinations that two logs have of a message, as ``combine`` says."""

    def learn(self, message: KSMessage) -> None:
        olog = message.olog.noting(message.source, message.seq, message.dests)
        mine, theirs = ({MessageId(s, t): d for s, t, d in log} for log in (self.LOG, olog))
        entries = {m: self.combine(mine.get(m, 0), theirs.get(m, 0)) for m in mine | theirs}
        self.LOG = make_log(len(self.SR), {m: d & self.others for m, d in entries.items()})

    @staticmethod
    def combine(mine: Dests, theirs: Dests) -> Dests:
        raise NotImplementedError


class Hoarder(WrongMerge):
    """Remembers what either log does."""

    @staticmethod
    def combine(mine: Dests, theirs: Dests) -> Dests:
        return mine | theirs


class Amnesiac(WrongMerge):
    """Takes what is new to one log for something that it has forgotten."""

    @staticmethod
    def combine(mine: Dests, theirs: Dests) -> Dests:
        return mine & theirs


def excess(protocol: Callable[..., KS], seeds: int) -> tuple[int, int]:
    """How many destinations too many all logs held, and how many too few."""
    more = less = 0
    for seed in range(seeds):
        rng = random.Random(seed)
        run = Execution(protocol, rng.randint(3, 5), seed)
        for me in run.shuffle(9):
            held = {(m, d) for m, dests in known(run.protocols[me].LOG).items() for d in dests}
            necessary = run.graph.necessary_at(me)
            must = {(m, d) for m, dests in necessary.items() for d in dests}
            more += len(held - must)
            less += len(must - held)
    return more, less


def integers(protocol: Callable[..., KS], seed: int) -> tuple[int, float]:
    run = Execution(protocol, 5, seed)
    run.play(30)
    return run.meter.counted["control_integers"], run.meter.means()["log_integers_mean"]


@pytest.mark.parametrize("mutant", [WithoutConstraintOne, WithoutConstraintTwo, Hoarder])
def test_a_less_forgetful_mutant_keeps_order_at_a_higher_price(mutant: type[KS]) -> None:
    assert violations(mutant, 200) == 0
    more, less = excess(mutant, 30)
    assert more > 100
    assert less == 0
    for seed in range(5):
        assert all(a > b for a, b in zip(integers(mutant, seed), integers(KS, seed), strict=True))


def test_a_mutant_that_forgets_too_much_breaks_causal_order() -> None:
    assert violations(Amnesiac, 200) > 10
    assert excess(Amnesiac, 30)[1] > 100


# What it costs, and how it is written


def test_integers_are_those_of_figure_2_and_bytes_those_on_the_wire() -> None:
    run = Execution(KS, 5, seed=3)
    run.play(40)
    sizes = [len(dests) for dests in run.graph.dests.values()]
    copies, counted = sum(sizes), run.meter.counted
    log_structs = 3 * counted["control_entries"] + counted["control_destinations"]
    assert counted["control_integers"] == 4 * copies + sum(k * k for k in sizes) + log_structs
    assert run.sent[KSMessage].control_bytes == 4 * (counted["control_integers"] - 2 * copies)
    assert samples(run, "log_integers") == len(sizes) + copies
    assert samples(run, "message_integers") == sum(map(bool, sizes))  # some go to nobody


def samples(run: Execution[KS], name: str) -> float:
    return sum(number for _, number in run.meter.sampled[name].values())


def test_what_a_message_carries_is_averaged_over_copies_messages_and_processes() -> None:
    run = Execution(KS, 4)
    run.say(0, frozenset([1, 2]))  # 6 integers each, with an empty log
    run.say(0, frozenset([1]))  # 5, and (0, 1, {1, 2}): 5
    run.say(3, frozenset([0]))  # 5, with an empty log
    counted, means = run.meter.counted, run.meter.means()
    assert (counted["control_copies"], counted["control_integers"]) == (4, 6 + 6 + 10 + 5)
    assert means["message_integers_mean"] == (6 + 10 + 5) / 3
    assert means["message_integers_mean_of_processes"] == ((6 + 10) / 2 + 5) / 2
    assert means["message_entries_mean"] == 1 / 3


def test_ks_prime_pays_for_the_array_and_for_each_flag() -> None:
    ks, prime = Execution(KS, 9, seed=3), Execution(KSPrime, 9, seed=3)
    ks.play(60)
    prime.play(60)
    copies, counted = sum(map(len, prime.graph.dests.values())), prime.meter.counted
    for name in ("control_entries", "control_destinations"):
        assert counted[name] == ks.meter.counted[name]
    assert prime.meter.sampled["log_entries"] == ks.meter.sampled["log_entries"]
    array = 3  # integers for 9 × 9 bits, and as many with the message's own destinations
    clocks = counted["control_integers"] - array * copies
    assert counted["control_destinations"] < clocks
    assert clocks < counted["control_destinations"] + counted["control_entries"]
    control_bytes = prime.sent[KSPrimeMessage].control_bytes
    assert control_bytes == 4 * counted["control_integers"]
    assert control_bytes < ks.sent[KSMessage].control_bytes


def test_the_log_of_figure_2_and_the_log_as_bits() -> None:
    """P0's message 7 to {1, 2}, with P1's message 5 to {2} and P2's message 9, long delivered."""
    log = make_log(3, {MessageId(1, 5): 0b100, MessageId(2, 9): 0})
    message = KSMessage(0, 7, dests=0b110, olog=log)
    assert message.integers() == 4 + 2 + (3 + 1) + 3
    expected = [2, 2, 1, 2, 1, 5, 1, 2, 2, 9, 0]
    assert message.encode_control() == struct.pack("!11I", *expected)
    bits = KSPrimeMessage(0, 7, dests=0b110, olog=log)
    assert bits.integers() == 1 + 2
    assert bits.encode_control() == struct.pack("!3I", 0b100_100_000_110, 5, 9)


@pytest.mark.parametrize(
    "integers",
    [
        [],
        [0],
        [1, 0],  # its destination is missing
        [1, 0, 3],  # a process too many
        [2, 0, 1, 0],  # out of order
        [0, 1, 0, 1],  # an entry cut short
        [0, 0, 0],  # something after the end
        [0, 1, 3, 1, 0],  # a sender too many
        [0, 1, 0, 0, 0],  # clocks begin at 1
        [0, 1, 0, 1, 1, 0],  # a sender among its own destinations
        [0, 2, 1, 4, 1, 2, 1, 4, 1, 0],  # an entry twice
        [0, 2, 1, 4, 1, 2, 1, 5, 1, 2],  # a destination twice
        [0, 2, 1, 4, 0, 1, 5, 1, 2],  # an empty entry that should be purged
        [2**32 - 1, 2**32 - 1],
    ],
)
def test_malformed_logs_are_refused(integers: list[int]) -> None:
    with pytest.raises(WireError):
        KSMessage.decode_control(struct.pack(f"!{len(integers)}I", *integers), 3)


@pytest.mark.parametrize(
    "integers",
    [
        [],
        [1 << 3],  # a clock is missing
        [0, 1],  # a clock too many
        [1 << 12],  # a flag beyond the array
        [0b11 << 3, 5, 5],  # with and without destinations
        [0b11 << 3, 4, 5],  # an empty entry that should be purged
        [1 << 3, 0],  # clocks begin at 1
    ],
)
def test_malformed_arrays_are_refused(integers: list[int]) -> None:
    with pytest.raises(WireError):
        KSPrimeMessage.decode_control(struct.pack(f"!{len(integers)}I", *integers), 3)


def test_a_log_is_a_value_that_can_be_copied_compared_and_looked_into() -> None:
    entries = {MessageId(0, 3): 0b110, MessageId(0, 4): 0, MessageId(2, 1): 0b001}
    log = make_log(3, entries)
    assert [*log] == [(0, 3, 0b110), (0, 4, 0), (2, 1, 0b001)]
    assert log.size == (3, 3, 1)
    for same in (deepcopy(log), pickle.loads(pickle.dumps(log)), make_log(3, entries)):
        assert (same, freeze(same)) == (log, freeze(log))
    assert log.__getstate__() == {"newest": [4, 0, 1], "left": {(0, 3): 0b110, (2, 1): 0b001}}
    for name in entries:
        other = make_log(3, {**entries, name: 0b010})
        assert other != log
        assert freeze(other) != freeze(log)


@BOTH
def test_of_several_missing_messages_the_first_by_name_is_waited_for(protocol: type[KS]) -> None:
    """So that the order of deliveries does not depend on how a log is kept."""
    run = Execution(protocol, 4)
    names = [run.say(sender, frozenset([1, 3])) for sender in (2, 0)]
    for name in names:
        run.pass_on_message(name, 1)
    answer = run.say(1, frozenset([3]))
    run.pass_on_message(answer, 3)
    assert run.log.held == [(3, answer, MessageId(0, 1))]
