"""Who is to blame for an exception: if a protocol, one sentence says which process, when, and why."""

from collections.abc import Sequence
from types import FrameType
from typing import NamedTuple

from testbed.errors import ProtocolError
from testbed.node.effects import MisuseError, misuse
from testbed.node.node import Node
from testbed.plugins.blame import is_channel, last_line, lines_of, quoted, words, yielding
from testbed.protocols import NS_PER_MS, Protocol

_RETURNED_NONE = "'NoneType' object is not iterable"


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
    lines = lines_of(error)
    performing = [i for i, (f, _) in enumerate(lines) if _node(f) is not None or is_channel(f)]
    frames = [lines[i][0] for i in reversed(performing)]
    node = next((node for frame in frames if (node := _node(frame))), None)
    if node is None:
        line = last_line(lines)
        return line and Fault(words(error), quoted(line))
    event, now, method = next((e for f in frames if (e := _event(f))), ("", 0, ""))
    line, what = last_line(lines[performing[-1] + 1 :]), words(error)
    if line is None:  # it was not the protocol that failed, but what it had asked for
        if isinstance(error, OSError | MemoryError):
            return None
        line = next((at for f in frames if (at := yielding(f.f_locals.get("effects")))), None)
        what = _asked_for(frames, node, error) or what
        if isinstance(error, TypeError) and str(error) == _RETURNED_NONE:
            what = f"{method}() returned None instead of effects: is a `yield` missing?"
    return Fault(what, quoted(line), node.id, event, now)


def _asked_for(frames: Sequence[FrameType], node: Node, error: BaseException) -> str | None:
    """What is wrong with the effect that was being performed."""
    if isinstance(error, MisuseError):
        return str(error)
    effects = (frame.f_locals["effect"] for frame in frames if "effect" in frame.f_locals)
    return next((misuse(effect, node.id, node.processes) for effect in effects), None)


def _node(frame: FrameType) -> Node | None:
    node = frame.f_locals.get("self")
    return node if isinstance(node, Node) else None


def _event(frame: FrameType) -> tuple[str, int, str] | None:
    """What had happened to the node, when, and what the protocol's method for it is called."""
    names, method = frame.f_locals, frame.f_code.co_name
    match method:
        case "receive":
            message = getattr(names["message"], "id", names["message"])
            what = f"on receiving {message} from process {names['sender']}"
        case "timeout":
            what = f"as its timer {names['timer']!r} ran out"
        case "_multicast":
            what, method = f"on multicasting {names['name']}", "multicast"
        case "start" | "join" | "leave":
            what = f"at its {method}"
        case _:
            return None
    return what, names["now"], method
