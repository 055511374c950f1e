"""Who is to blame for an exception: if a protocol, one sentence says which process, when, and why."""

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from testbed.errors import ProtocolError
from testbed.node.effects import MisuseError, misuse
from testbed.node.node import Node
from testbed.node.trouble import Trouble, trouble_of
from testbed.plugins.blame import is_channel, last_line, lines_of, quoted, words, yielding
from testbed.protocols import NS_PER_MS, Protocol

# how Python says it, and how compiled code does
_RETURNED_NONE = ("'NoneType' object is not iterable", "iterator expected; got None")


class Fault(NamedTuple):
    """What a protocol did wrong: in which process, upon which event, where in its code."""

    what: str
    where: str
    process: int | None = None
    event: str = ""
    now: int = 0

    def __str__(self) -> str:
        return f"{self.event and self.event + ': '}{self.what}{self.where}"

    def of(self, protocol: type[Protocol]) -> ProtocolError:
        """The sentence for users."""
        if self.process is None:
            return ProtocolError(f"{protocol.name} failed: {self.what}{self.where}")
        time = f"at {self.now / NS_PER_MS:.3f} ms"
        return ProtocolError(f"{protocol.name} failed in process {self.process} {time} {self}")


def fault(error: BaseException) -> Fault | None:
    """What a protocol did wrong that led to an exception; None if none had a hand in it."""
    lines, its = lines_of(error), trouble_of(error)
    if its is None:
        line = last_line(lines)
        return line and Fault(words(error), quoted(line))
    performing = [i for i, (frame, _) in enumerate(lines) if _is_node(frame) or is_channel(frame)]
    channel = [lines[i][0].f_locals for i in reversed(performing) if is_channel(lines[i][0])]
    line, what = last_line(lines[performing[-1] + 1 :] if performing else lines), words(error)
    if line is None:  # it was not the protocol that failed, but what it had asked for
        if isinstance(error, OSError | MemoryError):
            return None
        effects = *(names.get("effects") for names in channel), *its.effects
        line = next((at for each in effects if (at := yielding(each))), None)
        what = _asked_for(channel, its, error) or what
        if isinstance(error, TypeError) and str(error) in _RETURNED_NONE:
            what = f"{its.method}() returned None instead of effects: is a `yield` missing?"
    return Fault(what, quoted(line), its.node.id, _event(its), its.now)


def _asked_for(
    channel: Sequence[Mapping[str, Any]], its: Trouble, error: BaseException
) -> str | None:
    """What is wrong with the effect that was being performed."""
    if isinstance(error, MisuseError):
        return str(error)
    effects = *(names["effect"] for names in channel if "effect" in names), *its.asked
    return misuse(effects[0], its.node.id, its.node.processes) if effects else None


def _is_node(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == Node.__module__


def _event(its: Trouble) -> str:
    """What had happened to the node."""
    match its.method, its.arguments:
        case "receive", (message, sender):
            return f"on receiving {getattr(message, 'id', message)} from process {sender}"
        case "timeout", (timer,):
            return f"as its timer {timer!r} ran out"
        case "multicast", (name,):
            return f"on multicasting {name}"
        case _:
            return f"at its {its.method}" if its.method else ""
