"""What is wrong with an effect that a protocol yields, in words."""

from collections.abc import Hashable
from types import GeneratorType
from typing import Any

from testbed.packets.framing import LONGEST_DATAGRAM
from testbed.protocols import (
    CancelTimer,
    Count,
    Deliver,
    Discard,
    Hold,
    Message,
    Multicast,
    Note,
    Sample,
    Send,
    SetTimer,
)

LONGEST_SHOWN = 60  # characters of what is no effect


class MisuseError(Exception):
    """A protocol asks for what cannot be done."""


class EndlessError(MisuseError):
    """A protocol sends and sets timers for ever, and nothing comes of it."""


def misuse(effect: Any, me: int, processes: int) -> str | None:
    """What is wrong with an effect of process ``me``, if anything is."""
    match effect:
        case Send() | Multicast():
            return _no_message(effect) or _no_peers(effect, me, processes) or _too_long(effect)
        case Deliver() | Hold() | Discard():
            return _no_message(effect)
        case SetTimer() | CancelTimer():
            return _no_timer(effect)
        case Count() | Sample() | Note():
            return None
        case GeneratorType():
            return "it yields a generator; say `yield from` to yield what that yields"
        case _:
            return f"it yields {_short(effect)}, which is not an effect such as Send or Deliver"


def _no_message(effect: Send | Multicast | Deliver | Hold | Discard) -> str | None:
    if isinstance(effect.message, Message):
        return None
    what = type(effect).__name__
    return f"it yields {what} of {_short(effect.message)}, which is not a Message"


def _no_peers(effect: Send | Multicast, me: int, processes: int) -> str | None:
    peers: Any = effect.peers
    if not isinstance(peers, tuple | list | set | frozenset):
        return f"it sends to {_short(peers)}; that must be a tuple of processes, such as ({me},)"
    for peer in peers:
        if peer == me:
            return f"process {me} sends {effect.message.id} to itself; say Deliver instead"
        if not isinstance(peer, int) or not 0 <= peer < processes:
            return (
                f"it sends {effect.message.id} to process {_short(peer)}, and there are only "
                f"processes 0 to {processes - 1}"
            )
    return None


def _too_long(effect: Send | Multicast) -> str | None:
    size = effect.message.size
    if size <= LONGEST_DATAGRAM:
        return None
    return f"a message of {size:,} bytes; a datagram holds {LONGEST_DATAGRAM:,} at most"


def _no_timer(effect: SetTimer | CancelTimer) -> str | None:
    if not isinstance(effect.timer, Hashable):
        return f"it names a timer {_short(effect.timer)}, which cannot be a key of a dictionary"
    if isinstance(effect, SetTimer):
        delay: Any = effect.delay
        if not isinstance(delay, int) or delay < 0:
            return f"it sets a timer to {_short(delay)} ns; that must be a whole number from 0 on"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
