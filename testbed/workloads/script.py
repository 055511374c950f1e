"""The workload that is written down: who sends when, and who answers what.

    [workload]
    model = "script"

    [[workload.send]]
    node = 0
    at_ms = 1.5
    to = [1, 2]            # all, if not given; or group = "g1", if the experiment has groups
    payload_bytes = 100    # as [workload] says, if not given

    [[workload.send]]
    node = 2
    answers = 0            # instead of at_ms: as soon as it delivers the first message of this list

Messages are numbered from 0 in the order of the list, and a payload begins with that number. An answer
goes to everybody, or to one of its sender's groups, unless it says to which.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Required

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from testbed.protocols import NS_PER_MS, Message
from testbed.topologies import Groups
from testbed.workloads.base import (
    LONGEST_PAYLOAD,
    NO_GROUPS,
    Sending,
    Workload,
    at_least,
)

NUMBER_BYTES = 4


@with_config(ConfigDict(extra="forbid"))
class Line(TypedDict, total=False):
    """One message of a script: of this node, at a time or in answer to another message."""

    node: Required[int]
    at_ms: float
    answers: int
    to: list[int]
    group: str
    payload_bytes: int


@dataclass(frozen=True, kw_only=True)
class Script(Workload):
    """All messages one by one; ``senders`` and ``duration_ms`` have no meaning here."""

    senders: int = 0
    payload_bytes: int = NUMBER_BYTES
    send: tuple[Line, ...]

    model: ClassVar[str] = "script"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("payload_bytes", self.payload_bytes, NUMBER_BYTES)
        for number, line in enumerate(self.send):
            _check(number, line)
        if not any("at_ms" in line for line in self.send):
            raise ValueError("a script needs at least one message with at_ms")
        if len(self._answers) < sum("answers" in line for line in self.send):
            raise ValueError("a node answers a message of a script once at most")

    @property
    def duration(self) -> int:
        """Until the last of them is sent."""
        return max(round(line["at_ms"] * NS_PER_MS) for line in self.send if "at_ms" in line)

    def sends(
        self, processes: int, rng: random.Random, groups: Groups = NO_GROUPS
    ) -> Iterator[Sending]:
        """What is not an answer, in order of time and then of the list."""
        for number in range(len(self.send)):
            self._check_names(number, processes, groups)
        unasked = [(line["at_ms"], n) for n, line in enumerate(self.send) if "at_ms" in line]
        for at_ms, number in sorted(unasked):
            node, at = self.send[number]["node"], round(at_ms * NS_PER_MS)
            for to in self._to(number, groups) or self._audiences(node, rng, groups):
                yield Sending(at, node, self._payload(number), to)

    def _check_names(self, number: int, processes: int, groups: Groups) -> None:
        line = self.send[number]
        for node in (line["node"], *line.get("to", ())):
            if not 0 <= node < processes:
                raise ValueError(
                    f"message {number} of the script names node {node}, and the "
                    f"topology has nodes 0 to {processes - 1}"
                )
        if "group" in line and line["group"] not in groups:
            raise ValueError(
                f"message {number} of the script names group {line['group']!r}, and "
                + (f"there are {', '.join(groups)}" if groups else "[groups] has none")
            )

    def _to(self, number: int, groups: Groups) -> list[frozenset[int]]:
        """The destinations that a line gives, if it gives any."""
        line = self.send[number]
        if "group" in line:
            return [groups[line["group"]]]
        return [frozenset(line["to"])] if "to" in line else []

    def broadcasts(self) -> bool:
        """Whether no message says where it goes."""
        return not any("to" in line or "group" in line for line in self.send)

    def answer(self, node: int, message: Message, processes: int) -> bytes | None:
        """The message that answers this one, if there is any."""
        number = self._answers.get((node, _number(message)))
        return None if number is None else self._payload(number)

    def audience(self, node: int, message: Message, groups: Groups) -> frozenset[int] | None:
        """Where the answer's line says."""
        for to in self._to(self._answers[node, _number(message)], groups):
            return to
        return super().audience(node, message, groups)

    def answers_per_message(self) -> int:
        """Rounded up."""
        unasked = sum("at_ms" in line for line in self.send)
        return -(-(len(self.send) - unasked) // unasked)

    @cached_property
    def _answers(self) -> dict[tuple[int, int], int]:
        """By the node that answers, and what."""
        return {
            (line["node"], line["answers"]): number
            for number, line in enumerate(self.send)
            if "answers" in line
        }

    def _payload(self, number: int) -> bytes:
        size = self.send[number].get("payload_bytes", self.payload_bytes)
        return number.to_bytes(NUMBER_BYTES, "big") + bytes(size - NUMBER_BYTES)


def _number(message: Message) -> int:
    return int.from_bytes(message.payload[:NUMBER_BYTES], "big")


def _check(number: int, line: Line) -> None:
    """Refuse a line that has no meaning."""
    if ("at_ms" in line) == ("answers" in line):
        raise ValueError(f"message {number} of the script needs either at_ms or answers")
    if not 0 <= line.get("at_ms", 0) < float("inf"):
        raise ValueError(f"at_ms must not be negative, not {line['at_ms']}")
    if "answers" in line and not 0 <= line["answers"] < number:
        raise ValueError(f"message {number} of the script answers one that is not before it")
    if "group" in line and "to" in line:
        raise ValueError(f"message {number} of the script has both a group and a list of nodes")
    if not NUMBER_BYTES <= line.get("payload_bytes", NUMBER_BYTES) <= LONGEST_PAYLOAD:
        raise ValueError(f"payload_bytes must be from {NUMBER_BYTES} to {LONGEST_PAYLOAD}")


def without(send: Sequence[Line], gone: Collection[int]) -> list[Line]:
    """A script without some of its messages, and without the answers to them."""
    numbers: dict[int, int] = {}
    kept: list[Line] = []
    for number, line in enumerate(send):
        if number in gone or ("answers" in line and line["answers"] not in numbers):
            continue
        numbers[number] = len(kept)
        moved = line.copy()
        if "answers" in line:
            moved["answers"] = numbers[line["answers"]]
        kept.append(moved)
    return kept
