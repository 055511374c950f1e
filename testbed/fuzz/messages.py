"""Random scripts: who sends what and when, and who answers what inside its delivery.

Most scripts are short, so that many of them are tried; a few have some hundred messages. Their styles
differ in the answers, because a protocol that is entered again by an answer while it hands messages
up must not lose its place:

- some: now and then one or two processes answer;
- burst: nearly all destinations of a message answer it;
- chain: one process answers, another answers that, and so on, each time to a few;
- everybody: every destination answers, and every destination of the answers;
- one: one process answers whatever it delivers that is no answer.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from testbed.fuzz.elements import SPAN_MS, Members, rounded
from testbed.protocols import Protocol
from testbed.workloads.script import NUMBER_BYTES, ScriptedMessage

MOST_MESSAGES = 24  # of most scripts
LENGTHS = (MOST_MESSAGES,) * 12 + (60,) * 3 + (200,)
MOST_DELIVERIES = 2000  # messages × processes, of the long ones
STYLES = ("some", "burst", "chain", "chain", "everybody", "one", "one")
CHAINS = (2, 3, 4, 8)
FAVOURITES = 5  # processes that are more often destinations than others


def script(
    protocol: type[Protocol], nodes: int, groups: Members, rng: random.Random
) -> list[ScriptedMessage]:
    """Bursts or single messages, with answers to them and answers to these."""
    length = rng.choice(LENGTHS)
    if length > MOST_MESSAGES:
        length = max(MOST_MESSAGES, min(length, MOST_DELIVERIES // nodes))
    subsets = protocol.takes_subsets and not groups and rng.random() < 0.6
    writer = _Writer(nodes, groups, subsets, rng.choice(STYLES), rng)
    most = rng.randint(1, length)
    span = rng.choice([0.0, 1.0, SPAN_MS])
    return writer.write(most, lambda: rng.uniform(0, span))


def script_among(
    actors: Sequence[int], nodes: int, most: int, when: Callable[[], float], rng: random.Random
) -> list[ScriptedMessage]:
    """As many messages, sent at such times, many of them by these processes and to some of them."""
    writer = _Writer(nodes, {}, rng.random() < 0.8, rng.choice(STYLES), rng, list(actors))
    return writer.write(most, when)


def stream(
    sender: int, answerers: Sequence[int], most: int, when: Callable[[], float]
) -> list[ScriptedMessage]:
    """Messages of one process to all, sent at such times, and the answers of a few to each."""
    messages: list[ScriptedMessage] = []
    for _ in range(most):
        number = len(messages)
        messages.append({"node": sender, "at_ms": rounded(when())})
        messages += [{"node": node, "answers": number} for node in answerers]
    return messages


def triangles(
    far: Sequence[int], nodes: int, most: int, when: Callable[[], float], rng: random.Random
) -> list[ScriptedMessage]:
    """Messages to some processes and to another one, and what that one causes, to the same ones.

    The last may be sent by a third process: it must not come before the first.
    """
    messages: list[ScriptedMessage] = []
    while len(messages) < most:
        first, *rest = rng.sample(range(nodes), min(nodes, rng.randint(2, 3)))
        to = sorted({*far, *rest[:1]})
        messages.append({"node": first, "at_ms": rounded(when()), "to": to})
        for node, following in zip_longest(rest, rest[1:]):
            to = sorted(far) if following is None else [following]
            messages.append({"node": node, "answers": len(messages) - 1, "to": to})
    return messages


@dataclass
class _Writer:
    """Writes a script in one style."""

    nodes: int
    groups: Members
    subsets: bool  # messages go to some processes only
    style: str
    rng: random.Random
    favourites: list[int] = field(default_factory=list)  # more often destinations than others
    messages: list[ScriptedMessage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.answering = self.rng.choice([0.0, 0.3, 0.7])
        self.longest = self.rng.choice(CHAINS)
        few = self.rng.randint(1, min(3, self.nodes))
        if not self.favourites:
            self.favourites = self.rng.sample(range(self.nodes), min(FAVOURITES, self.nodes))
        self.clique = self.rng.random() < 0.4  # the favourites talk among themselves
        everybody = self.favourites if self.clique else range(self.nodes)
        self.senders = self.rng.sample(everybody, min(len(everybody), self.rng.choice([few, 8])))

    def write(self, most: int, when: Callable[[], float]) -> list[ScriptedMessage]:
        """As many messages, sent at such times."""
        while len(self.messages) < most:
            self.begin(rounded(when()), most)
        for message in self.messages:
            if self.rng.random() < 0.1:
                message["payload_bytes"] = self.rng.randint(NUMBER_BYTES, 1000)
        return self.messages

    def begin(self, at_ms: float, most: int) -> None:
        """A message at a time, with the answers to it, as long as there are not too many."""
        rng = self.rng
        message: ScriptedMessage = {"node": rng.choice(self.senders), "at_ms": at_ms}
        if self.groups:
            message["group"] = rng.choice([*self.groups])
            message["node"] = rng.choice(self.groups[message["group"]])
        elif self.subsets:
            message["to"] = self._some()
        self.messages.append(message)
        unanswered = deque([(len(self.messages) - 1, 0)])  # with the length of the chain so far
        while unanswered:
            number, depth = unanswered.popleft()
            for node in self._answerers(number, depth):
                if len(self.messages) >= most:
                    return
                unanswered.append((len(self.messages), depth + 1))
                self.messages.append(self._answer(node, number))

    def _answerers(self, number: int, depth: int) -> list[int]:
        """Who answers a message; one that is not a destination never sends its answer."""
        rng, there = self.rng, self._destinations(number)
        if self.style == "some":
            if rng.random() >= self.answering:
                return []
            return rng.sample(range(self.nodes), rng.randint(1, min(2, self.nodes)))
        if self.style == "one":
            return self.favourites[:1] if not depth else []
        if self.style == "chain":
            return [rng.choice(there)] if depth < self.longest else []
        if depth > (self.style == "everybody"):
            return []
        return [node for node in there if self.style == "everybody" or rng.random() < 0.8]

    def _answer(self, node: int, number: int) -> ScriptedMessage:
        answer: ScriptedMessage = {"node": node, "answers": number}
        if self.subsets and self.rng.random() < 0.8:
            answer["to"] = self._some()
        return answer

    def _some(self) -> list[int]:
        """A few processes, mostly the same ones, or any number of them."""
        rng = self.rng
        if self.clique:
            few = rng.randint(1, min(3, len(self.favourites)))
            return sorted(rng.sample(self.favourites, few))
        if rng.random() < 0.3:
            return sorted(rng.sample(range(self.nodes), rng.randint(1, self.nodes)))
        often = {node for node in self.favourites if rng.random() < 0.5}
        return sorted(
            often.union(rng.sample(range(self.nodes), rng.randint(1, min(2, self.nodes))))
        )

    def _destinations(self, number: int) -> list[int]:
        message = self.messages[number]
        if "group" in message:
            return self.groups[message["group"]]
        return message.get("to") or [*range(self.nodes)]
