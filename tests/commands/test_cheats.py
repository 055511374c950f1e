"""What would be free or shared in one Python process only is refused by every command that uses one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import tomli_w

from testbed.protocols import Deliver, Effects, Message, Overlay, Place, Send
from testbed.protocols.broken import BROKEN
from testbed.protocols.wire import WireError, of_kind
from tests.command_line import CommandLine
from tests.experiments import SMALL

remembered: dict[int, int] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Noted(Message):
    """A message with a field that nobody encodes."""

    note: int = 0


@of_kind(1)
class Halved(Noted):
    """Its class is known, its field is still not encoded."""

    half: int = 0


@of_kind(1)
class Miscounted(Message):
    """It has more control information than it accounts for."""

    def encode_control(self) -> bytes:
        return b"four"


@of_kind(1)
class Large(Message):
    """It has a number that no byte can hold."""

    def encode_control(self) -> bytes:
        return bytes([1000])


@of_kind(1)
class Unreadable(Message):
    """It cannot be decoded."""

    @classmethod
    def decode_control(cls, control: bytes, processes: int) -> dict[str, Any]:
        raise WireError("illegible")


class Sender(Overlay):
    """Sends to everybody; the class of its messages is the case."""

    name: ClassVar[str] = "cheat"
    sends: ClassVar[type[Message]] = Message

    def multicast(self, payload: bytes, destinations: frozenset[int] | None, now: int) -> Effects:
        self.seen[self.me] += 1
        more = {"half": 7} if self.sends is Halved else {}
        yield Send(self.neighbours, self.sends(self.me, self.seen[self.me], payload, now, **more))
        yield Deliver(Message(self.me, self.seen[self.me], payload, now))


class InClass(Overlay):
    """The classic accident: a dictionary of the class."""

    name: ClassVar[str] = "cheat"
    waiting: ClassVar[dict[int, int]] = {}

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        self.waiting[message.source] = message.seq
        yield from super().receive(message, sender, now)


class InModule(Overlay):
    """A dictionary of the module."""

    name: ClassVar[str] = "cheat"

    def __init__(self, place: Place, settings: Any = None) -> None:
        super().__init__(place, settings)

    def receive(self, message: Message, sender: int, now: int) -> Effects:
        remembered[message.source] = message.seq
        yield from super().receive(message, sender, now)


def sending(message: type[Message], *known: type[Message]) -> type[Overlay]:
    return type("Cheat", (Sender,), {"sends": message, "messages": known or (message,)})


CASES = {
    "unknown": (sending(Noted, Message), "Noted does not arrive as it was sent: its class is not"),
    "field": (sending(Halved), "half is not what was sent"),
    "size": (sending(Miscounted), "control_size is 0, but encode_control() returns 4 bytes"),
    "encode": (sending(Large), "it cannot be encoded (ValueError"),
    "decode": (sending(Unreadable), "it cannot be decoded (WireError: illegible)"),
    "class": (InClass, "cheat: InClass.waiting has changed while processes ran"),
    "module": (InModule, "test_cheats.remembered has changed while processes ran"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_cheat_is_told_in_one_sentence(
    case: str, testbed: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol, sentence = CASES[case]
    monkeypatch.setitem(BROKEN, "cheat", protocol)
    file = tmp_path / "cheat.toml"
    document = SMALL | {"protocol": {"name": "cheat"}, "channel": "reliable"}
    file.write_text(tomli_w.dumps(document))
    for command in (
        ("run", file, "--no-digest", "--runs", tmp_path),
        ("explore", "--protocol", "cheat", "--nodes", 2, "--messages", 1),
        ("fuzz", "--protocol", "cheat", "--seeds", 1, "--runs", tmp_path),
    ):
        remembered.clear()
        InClass.waiting.clear()
        assert sentence in testbed(*command, status=2).err, command
