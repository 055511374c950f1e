"""Packing: what one event sends to the same processes is one datagram, and nothing else changes."""

from testbed.protocols import Count, Effect, Send
from testbed.protocols.groups.agreed import PART_BYTES
from testbed.protocols.groups.messages import Cast, Silence
from testbed.protocols.groups.packing import Pack, packed
from testbed.protocols.groups.passed import Passed
from tests.protocols.daisy.daisies import Daisies

A, B, C = range(3)
OTHERS = (B, C)
FRAME = 42  # the bytes around a message that another datagram would take


def casts(*sizes: int) -> list[Cast]:
    return [Cast(A, seq, bytes(size), group=seq) for seq, size in enumerate(sizes, 1)]


def test_what_is_sent_to_the_same_processes_goes_together_and_last() -> None:
    (first, second), hush = casts(5, 6), Silence(A, 0)
    effects: list[Effect] = [
        Send(OTHERS, first),
        Send((B,), hush),
        Count("x"),
        Send(OTHERS, second),
    ]
    count, pack, alone = packed(A, iter(effects))
    assert count == Count("x")
    assert alone == Send((B,), hush)
    assert isinstance(pack, Send)
    assert pack.peers == OTHERS
    assert isinstance(pack.message, Pack)
    assert [(m.id, m.payload, m.group) for m in pack.message.messages()] == [
        (m.id, m.payload, m.group) for m in (first, second)
    ]
    assert pack.message.size < first.size + second.size + FRAME


def test_a_pack_fits_a_packet_and_what_travels_by_way_of_others_is_not_packed() -> None:
    detour = Passed(A, 0, sender=A, to=B, inner=Silence(A, 0))
    messages = [*casts(500, 500, 500), detour, *casts(10, 3000, 10)]
    effects = packed(A, (Send(OTHERS, message) for message in messages))
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    assert [len(m.parts) if isinstance(m, Pack) else 1 for m in sent] == [2, 1, 1, 1, 1, 1]
    assert all(m.size <= PART_BYTES for m in sent if isinstance(m, Pack))


def test_a_server_relays_together_what_was_sent_together() -> None:
    world = Daisies(12)
    world.run(30)
    names = [world.say(1, [2, 6, 10]) for _ in range(5)]
    world.settle()
    assert world.delivered(10) == world.delivered(6) == world.delivered(2) == names
    assert world.meter.counted["broadcasts"] == 5 * 4
    packs = world.sent[Pack]
    assert packs.copies > 0
    assert packs.copies + world.sent[Cast].copies < world.meter.counted["broadcast_copies"]
    world.sound()
