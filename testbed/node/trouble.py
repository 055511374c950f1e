"""What a node was doing when an exception was raised; it travels with the exception."""

from typing import TYPE_CHECKING, Any

from testbed.plugins.calls import calls

if TYPE_CHECKING:
    from testbed.node.node import Node

_NAME = "testbed_trouble"  # the attribute of the exception


class Trouble:
    """What the innermost node was doing: upon which event, in which effect."""

    def __init__(self, node: "Node") -> None:
        self.node = node
        self.call = calls.current()
        self.method, self.arguments, self.now = "", (), 0  # of the protocol
        self.effects: list[Any] = []  # that were being performed, the innermost first
        self.asked: list[Any] = []  # the effects that it had come to in these

    def performed(self, effects: Any, asked: list[Any]) -> None:
        """The node was performing these effects, and had come to this one, if to any."""
        self.effects.append(effects)
        self.asked += asked

    def happened(
        self, method: str, arguments: tuple[Any, ...], now: int, effects: Any = None
    ) -> None:
        """The node had called this method of the protocol."""
        self.effects.append(effects)
        if not self.method:
            self.method, self.arguments, self.now = method, arguments, now


def trouble(error: BaseException, node: "Node") -> Trouble:
    """What is known of an exception already, or from now on; one can be raised again, elsewhere."""
    known = trouble_of(error)
    if known is None or known.call != calls.current():
        known = Trouble(node)
        setattr(error, _NAME, known)
    return known


def trouble_of(error: BaseException) -> Trouble | None:
    """What is known of an exception, if it was raised in a node."""
    known = getattr(error, _NAME, None)
    return known if isinstance(known, Trouble) else None
