"""The workload that lists every message: who sends it when, or which message it answers.

    [workload]
    model = "script"

    [[workload.send]]
    node = 0
    at_ms = 1.5
    to = [1, 2]            # default: all; or group = "g1", if the experiment has groups
    payload_bytes = 100    # default: that of [workload]

    [[workload.send]]
    node = 2
    answers = 0            # instead of at_ms: as soon as it delivers message 0 of this list

Messages are numbered from 0 in the order of the list, and a payload begins with that number. An answer
without destinations goes to all processes, or to one of its sender's groups.
"""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Required
from zlib import crc32

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict, override

from testbed.protocols import NS_PER_MS, Message
from testbed.topologies import Groups
from testbed.workloads import base
from testbed.workloads.base import LONGEST_PAYLOAD, NO_GROUPS, Sending, Workload

NUMBER_BYTES = 4  # of a message's number, with which its payload begins


@with_config(ConfigDict(extra="forbid"))
class ScriptedMessage(TypedDict, total=False):
    """One message of a script, sent by a node at a given time or in answer to another message."""

    node: Required[int]
    at_ms: float
    answers: int
    to: list[int]
    group: str
    payload_bytes: int


@dataclass(frozen=True, kw_only=True)
class Script(Workload, model="script"):
    """Exactly the listed messages; ``senders`` and ``duration_ms`` have no meaning here."""

    senders: base.ZeroOrMore = 0
    payload_bytes: Annotated[base.PayloadBytes, partial(base.at_least, least=NUMBER_BYTES)] = (
        NUMBER_BYTES
    )
    send: tuple[ScriptedMessage, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for number, message in enumerate(self.send):
            _check(number, message)
        if not any("at_ms" in message for message in self.send):
            raise ValueError("a script needs at least one message with at_ms")
        if len(self._answers) < sum("answers" in message for message in self.send):
            raise ValueError("a node answers a message of a script once at most")

    @property
    @override
    def duration(self) -> int:
        return max(
            round(message["at_ms"] * NS_PER_MS) for message in self.send if "at_ms" in message
        )

    @override
    def sends(
        self, processes: int, rng: random.Random, groups: Groups = NO_GROUPS
    ) -> Iterator[Sending]:
        for number in range(len(self.send)):
            self._check_names(number, processes, groups)
        unasked = [
            (message["at_ms"], n) for n, message in enumerate(self.send) if "at_ms" in message
        ]
        for at_ms, number in sorted(unasked):
            node, at = self.send[number]["node"], round(at_ms * NS_PER_MS)
            for to in self._to(number, groups) or self._audiences(node, rng, groups):
                yield Sending(at, node, self._payload(number), to)

    def _check_names(self, number: int, processes: int, groups: Groups) -> None:
        message = self.send[number]
        for node in (message["node"], *message.get("to", ())):
            if not 0 <= node < processes:
                raise ValueError(
                    f"message {number} of the script names node {node}, and the "
                    f"topology has nodes 0 to {processes - 1}"
                )
        if "group" in message and message["group"] not in groups:
            raise ValueError(
                f"message {number} of the script names group {message['group']!r}, and "
                + (f"there are {', '.join(groups)}" if groups else "[groups] has none")
            )

    def _to(self, number: int, groups: Groups) -> list[frozenset[int]]:
        """The destinations that a message names, if it names any."""
        message = self.send[number]
        if "group" in message:
            return [groups[message["group"]]]
        return [frozenset(message["to"])] if "to" in message else []

    @override
    def broadcasts(self) -> bool:
        return not any("to" in message or "group" in message for message in self.send)

    @override
    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        number = self._answers.get((node, _number(message)))
        return None if number is None else self._payload(number)

    @override
    def audience(
        self, node: int, message: Message, processes: int, groups: Groups
    ) -> frozenset[int] | None:
        for to in self._to(self._answers[node, _number(message)], groups):
            return to
        return super().audience(node, message, processes, groups)

    @override
    def draw(self, node: int, message: Message) -> int:
        return crc32(bytes((node % 256, message.source % 256)))  # whatever else the script has

    @override
    def answers_per_message(self) -> int:
        unasked = sum("at_ms" in message for message in self.send)
        return -(-(len(self.send) - unasked) // unasked)  # rounded up

    @cached_property
    def _answers(self) -> dict[tuple[int, int], int]:
        """The numbers of the answers, by the node that answers and the message that it answers."""
        return {
            (message["node"], message["answers"]): number
            for number, message in enumerate(self.send)
            if "answers" in message
        }

    def _payload(self, number: int) -> bytes:
        size = self.send[number].get("payload_bytes", self.payload_bytes)
        return number.to_bytes(NUMBER_BYTES, "big") + bytes(size - NUMBER_BYTES)


def _number(message: Message) -> int:
    return int.from_bytes(message.payload[:NUMBER_BYTES], "big")


def _check(number: int, message: ScriptedMessage) -> None:
    """Refuse a message that has no meaning."""
    if ("at_ms" in message) == ("answers" in message):
        raise ValueError(f"message {number} of the script needs either at_ms or answers")
    if not 0 <= message.get("at_ms", 0) < float("inf"):
        raise ValueError(f"at_ms must not be negative, but is {message['at_ms']}")
    if "answers" in message and not 0 <= message["answers"] < number:
        raise ValueError(f"message {number} of the script answers one that is not before it")
    if "group" in message and "to" in message:
        raise ValueError(f"message {number} of the script has both a group and a list of nodes")
    if not NUMBER_BYTES <= message.get("payload_bytes", NUMBER_BYTES) <= LONGEST_PAYLOAD:
        raise ValueError(f"payload_bytes must be from {NUMBER_BYTES} to {LONGEST_PAYLOAD}")


def without(send: Sequence[ScriptedMessage], gone: Collection[int]) -> list[ScriptedMessage]:
    """A script without some of its messages and all answers to them."""
    numbers: dict[int, int] = {}
    kept: list[ScriptedMessage] = []
    for number, message in enumerate(send):
        if number in gone or ("answers" in message and message["answers"] not in numbers):
            continue
        numbers[number] = len(kept)
        moved = message.copy()
        if "answers" in message:
            moved["answers"] = numbers[message["answers"]]
        kept.append(moved)
    return kept
