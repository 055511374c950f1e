"""What the explorer's states are made of: frozen values, channels, what the monitor remembers."""

import random
from typing import Any

import numpy as np

from testbed.explore import explore, make_places
from testbed.explore.channel_contents import ChannelContents
from testbed.explore.freeze import freeze
from testbed.explore.monitor import Monitor
from testbed.explore.process import Processes, Say
from testbed.explore.recorder import Act
from testbed.protocols import Message, MessageId
from tests.explore.odd_protocols import Mute, Scribbler


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
