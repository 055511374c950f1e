"""Changes of single messages: one more, one fewer, sent at another time, by another or to others."""

from testbed.fuzz.elements import Document, rounded
from testbed.fuzz.mutants.scope import Scope
from testbed.fuzz.mutants.talk import said, to_few
from testbed.workloads.script import ScriptedMessage, without


def say(scope: Scope) -> Document:
    """Add a message, an answer to one, or both."""
    rng, send = scope.rng, [*scope.document["workload"]["send"]]
    answered = rng.randrange(len(send))
    if rng.random() < 0.5:
        answered = len(send)
        send.append(_addressed({"node": scope.process(), "at_ms": _soon(scope)}, scope))
        if rng.random() < 0.4:
            return said(scope.document, send)
    node = rng.choice(send[answered].get("to") or range(scope.nodes))
    answer = _addressed({"node": node, "answers": answered}, scope)
    return said(scope.document, send if _is_answered(send, answer) else [*send, answer])


def unsay(scope: Scope) -> Document:
    """Leave a message out, and the answers to it."""
    send = scope.document["workload"]["send"]
    rest = without(send, [scope.rng.randrange(len(send))])
    return said(scope.document, rest) if rest else scope.document


def retell(scope: Scope) -> Document:
    """Send a message earlier or later or when something happens; or by another, or to others."""
    rng = scope.rng
    send: list[ScriptedMessage] = scope.document["workload"]["send"]
    number = rng.randrange(len(send))
    line = send[number].copy()
    what = rng.choice(["when", "when", "who", "whom"])
    if what == "when" and "at_ms" in line:
        line["at_ms"] = _soon(scope) if rng.random() < 0.5 else scope.near(line["at_ms"])
    elif what == "who":
        line["node"] = scope.process()
        if _is_answered(send, line):
            return scope.document
    else:
        line.pop("to", None)
        line = _addressed(line, scope)
    return said(scope.document, [*send[:number], line, *send[number + 1 :]])


def _soon(scope: Scope) -> float:
    """When something happens, or while somebody is away."""
    if scope.timed and scope.rng.random() < 0.4:
        return rounded(scope.rng.uniform(*scope.span(scope.rng.choice(scope.timed))))
    return scope.time()


def _addressed(message: ScriptedMessage, scope: Scope) -> ScriptedMessage:
    return to_few(message, scope) if scope.rng.random() < 0.4 else message


def _is_answered(send: list[ScriptedMessage], answer: ScriptedMessage) -> bool:
    """Whether a process answers a message already."""
    said = [(line["node"], line["answers"]) for line in send if "answers" in line]
    return "answers" in answer and (answer["node"], answer["answers"]) in said
