"""Protocols that misbehave, each in a file of its own; they must be told apart in one sentence.

Each replaces the first line of a method of a good protocol; the line that is to blame has the word
``HERE`` in it.
"""

from pathlib import Path
from typing import NamedTuple

from scripts.hostility.own import FIFO, written

RECEIVE = "        source = message.source\n"
MULTICAST = "        self.delivered[self.me] += 1\n        message ="
INIT = "        self.waiting = {}\n"
SEND = "        yield Send(self.place.others, message)\n"


class Bad(NamedTuple):
    """A mistake: what is replaced by what, and the words that must be in the sentence."""

    where: str
    code: str
    words: str
    event: str = "on receiving m("  # upon which it goes wrong, and the message
    explored: str = ""  # other words of the explorer, to which timers that never rest are valid
    fuzzed: str = ""  # other words of the fuzzer
    judged: bool = False  # the run comes to its end, and the oracle has the word


def receives(code: str, words: str, **how: object) -> Bad:
    """A mistake at the beginning of ``receive``, whose rest follows."""
    return Bad(RECEIVE, f"        {code}\n{RECEIVE}", words, **how)  # type: ignore[arg-type]


MULTICASTING, EXPIRING = "on multicasting m(", "as its timer 't' ran out"
TIMER = "\n\n    def timeout(self, timer, now):\n        "
LAST = "            found = self.waiting.pop(MessageId(source, self.delivered[source] + 1), None)\n"
BAD = {
    "raises": receives("{}[message]  # HERE", "KeyError"),
    "raises-in-a-helper": receives("max(())  # HERE", "ValueError: max() "),
    "raises-at-first": Bad(
        MULTICAST, f"        1 / 0  # HERE\n{MULTICAST}", "division by zero", MULTICASTING
    ),
    "cannot-be-made": Bad(
        INIT, "        self.waiting = nothing  # HERE\n", "NameError", "fails as it is made"
    ),
    "opens": receives("open('/nowhere/at/all')  # HERE", "FileNotFoundError"),
    "asks": receives("assert not message.payload is None and sender < 0  # HERE", "AssertionError"),
    "computes": receives("while True: pass  # HERE", "does not come to an end"),
    "swallows": receives(
        "while True:\n            try:\n                sum(range(99_999))  # HERE\n"
        "            except Exception:\n                pass",
        "does not come to an end",
    ),
    "swallows-everything": receives(
        "while True:\n            try:\n                sum(range(99_999))  # HERE\n"
        "            except:\n                pass",
        "does not come to an end",
    ),
    "computes-as-it-is-made": Bad(
        INIT,
        "        while True: self.waiting = {}  # HERE\n",
        "does not come to an end",
        "fails as it is made",
    ),
    "holds-for-ever": receives("while True: yield Hold(message, None)  # HERE", "goes on yielding"),
    "delivers-for-ever": receives(
        "while True: yield Deliver(message)  # HERE",
        "goes on yielding",
        fuzzed="more than once",
    ),
    "recursive": receives(
        "yield from self.receive(message, sender, now)  # HERE", "RecursionError"
    ),
    "to-itself": receives("yield Send((self.me,), message)  # HERE", "to itself"),
    "to-nobody": receives("yield Send((99,), message)  # HERE", "only processes 0 to"),
    "to-minus-one": receives("yield Send((-1,), message)  # HERE", "only processes 0 to"),
    "no-tuple": receives("yield Send(3, message)  # HERE", "must be a tuple of processes"),
    "no-message": receives("yield Send((sender,), 'hello')  # HERE", "is not a Message"),
    "delivers-text": receives("yield Deliver('hello')  # HERE", "is not a Message"),
    "no-effect": receives("yield message  # HERE", "not an effect such as Send"),
    "no-effect-at-all": receives("yield  # HERE", "yields None, which is not an effect"),
    "yields-a-generator": receives("yield (n for n in ())  # HERE", "say `yield from`"),
    "no-yield": Bad(
        FIFO[FIFO.index("    def receive") :],
        "    def receive(self, message, sender, now):\n        Deliver(message)\n",
        "receive() returned None instead of effects: is a `yield` missing?",
    ),
    "timer-in-the-past": receives("yield SetTimer('t', -5)  # HERE", "must be a whole number"),
    "timer-in-halves": receives("yield SetTimer('t', 0.5)  # HERE", "must be a whole number"),
    "timer-of-a-list": receives("yield SetTimer([], 5)  # HERE", "key of a dictionary"),
    "timer-forgotten": receives(
        "yield SetTimer('t', 5)", "sets no timer, yet 't' ran out", event=EXPIRING
    ),
    "timers-for-ever": Bad(
        LAST,
        f"{LAST}        yield SetTimer('t', 0){TIMER}yield SetTimer('t', 0)  # HERE\n",
        "goes on without end",
        EXPIRING,
        explored="valid",
    ),
    "slow-timers-for-ever": Bad(
        LAST,
        f"{LAST}        yield SetTimer('t', 10**9){TIMER}yield SetTimer('t', 10**9)  # HERE\n",
        "goes on without end",
        EXPIRING,
        explored="valid",
    ),
    "ping-pong": Bad(
        FIFO[FIFO.index(RECEIVE) :],
        "        yield Send((sender,), message)  # HERE\n",
        "goes on without end",
        explored="never",
        fuzzed="goes on without end",
    ),
    "70-kB": Bad(
        SEND,
        "        yield Send(self.place.others, Message(self.me, 1, bytes(70_000)))  # HERE\n",
        "a message of 70,032 bytes; a datagram holds 65,507 at most",
        MULTICASTING,
    ),
    "10-MB": receives(
        "yield Send((sender,), Message(self.me, 1, bytes(10**7)))  # HERE",
        "a message of 10,000,032 bytes; a datagram holds 65,507 at most",
    ),
    "twice": receives("yield Deliver(message)", "more than once", fuzzed="repeat:", judged=True),
    "never": receives("return", "never delivered", fuzzed="repeat:", judged=True),
    "exits": receives("raise SystemExit(0)  # HERE", "it ends the program"),
    "exits-at-once": receives("__import__('os')._exit(0)  # HERE", "it ends the program"),
}


def bad_file(directory: Path, name: str) -> Path:
    """The file of a bad protocol, and an experiment with it and Timestamp."""
    bad = BAD[name]
    assert FIFO.count(bad.where) == 1, name
    text = FIFO.replace(bad.where, bad.code).replace("Send\n", "Send, SetTimer\n", 1)
    return written(directory, text)


def blamed(file: Path) -> str:
    """How a sentence ends that blames the right line."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if "HERE" in line:
            return f"(fifo.py, line {number}: {line.strip()})"
    return ""
