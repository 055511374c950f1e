"""Changes of what is said: all that a few processes say around some times."""

from collections.abc import Callable, Sequence

from testbed.fuzz.elements import Document, rounded
from testbed.fuzz.messages import script_among, stream, triangles
from testbed.fuzz.mutants.scope import WIDTHS, Scope, subjects
from testbed.workloads.script import ScriptedMessage, without

MOST_KEPT = 24  # messages of the experiment before
LENGTHS = (4, 8, 16)  # messages that are added, or that a stream has
CROWDS = (6, 10, 14)
LETTERS = (2, 3, 4)
MOST_ACTORS = 5
STREAMS = (2.0, 4.0, 6.0)  # heartbeats
AROUND = (1.0, 3.0, 6.0)


def talk(scope: Scope) -> Document:
    """Let few processes send and answer around some times, beside or instead of others."""
    rng, send = scope.rng, scope.document["workload"]["send"]
    style = rng.choice(STYLES)
    share = min(rng.choice([0.0, 0.5, 1.0]), MOST_KEPT / len(send))
    kept = without(send, [n for n in range(len(send)) if rng.random() >= share])
    return said(scope.document, [*kept, *renumbered(style(scope), len(kept))])


def said(document: Document, send: list[ScriptedMessage]) -> Document:
    """An experiment with other messages."""
    return {**document, "workload": {**document["workload"], "send": send}}


def renumbered(messages: Sequence[ScriptedMessage], first: int) -> list[ScriptedMessage]:
    """Messages that come after others in a script."""
    return [
        {**line, "answers": line["answers"] + first} if "answers" in line else line
        for line in messages
    ]


def to_few(message: ScriptedMessage, scope: Scope) -> ScriptedMessage:
    """To somebody that a fault strikes, if there is one, and mostly to another."""
    some = {scope.rng.choice(scope.struck or [scope.any()])}
    if scope.rng.random() < 0.5:
        some.add(scope.any())
    return {**message, "to": sorted(some)}


def _crowd(scope: Scope) -> list[ScriptedMessage]:
    """All processes, or two, send around one time, mostly to all, and some of it is answered."""
    rng = scope.rng
    around, width = scope.time(), rng.choice(AROUND) * scope.beat
    talkers = rng.sample(range(scope.nodes), rng.choice([min(2, scope.nodes), scope.nodes]))
    answered, few = rng.choice([0.0, 0.5, 1.0]), rng.choice([0.0, 0.0, 0.5])
    messages: list[ScriptedMessage] = []
    for _ in range(rng.choice(CROWDS)):
        at = rounded(max(0.0, around + rng.uniform(-1, 1) * width))
        lines: list[ScriptedMessage] = [{"node": rng.choice(talkers), "at_ms": at}]
        if rng.random() < answered:
            lines.append({"node": scope.process(), "answers": len(messages)})
        messages += [to_few(line, scope) if rng.random() < few else line for line in lines]
    return messages


def _last_words(scope: Scope) -> list[ScriptedMessage]:
    """Who goes says something just before, who comes back just after, and some of it is answered."""
    rng = scope.rng
    messages: list[ScriptedMessage] = []
    for fault in scope.timed:
        begins, ends = scope.span(fault)
        for node in subjects(fault):
            for end, sign in ((begins, -1), (ends, 1)):
                if rng.random() < 0.7:
                    width = rng.choice([0.3, 0.3, 1.0]) * scope.beat
                    at = rounded(max(0.0, end + sign * rng.uniform(-0.1, 1) * width))
                    messages.append({"node": node, "at_ms": at})
                    if rng.random() < 0.5:
                        messages.append({"node": scope.process(), "answers": len(messages) - 1})
    return messages or _crowd(scope)


def _chorus(scope: Scope) -> list[ScriptedMessage]:
    """Who goes and comes back has its say, and all talk around one time."""
    first = _last_words(scope)
    return [*first, *renumbered(_crowd(scope), len(first))]


def _letters(scope: Scope) -> list[ScriptedMessage]:
    """A few messages to somebody that a fault strikes, while it is away, and what follows them."""
    rng = scope.rng
    messages: list[ScriptedMessage] = []
    for _ in range(rng.choice(LETTERS)):
        away = scope.span(rng.choice(scope.timed)) if scope.timed else (0.0, scope.time())
        at = rng.uniform(away[0] - scope.beat, away[1] + scope.beat)
        messages.append(to_few({"node": scope.any(), "at_ms": rounded(max(0.0, at))}, scope))
        if rng.random() < 0.7:
            node = rng.choice([messages[-1]["node"], *messages[-1]["to"]])
            messages.append({"node": node, "answers": len(messages) - 1})
    return messages


def _stream(scope: Scope) -> list[ScriptedMessage]:
    """A few heartbeats of messages, and answers of who is struck, around one moment."""
    rng = scope.rng
    at_ms, node = scope.moment()[:2] if scope.moments else (scope.time(), scope.process())
    width = rng.choice(STREAMS) * scope.beat
    answerers = {node, *rng.sample(some := scope.struck, min(2, len(some)))}
    others = [other for other in range(scope.nodes) if other not in answerers] or [node]

    def when() -> float:
        return max(0.0, at_ms + rng.uniform(-0.5, 0.5) * width)

    return stream(rng.choice(others), sorted(answerers), 2 * rng.choice(LENGTHS), when)


def _triangles(scope: Scope) -> list[ScriptedMessage]:
    """What is sent to those that faults strike, or to some of them and others, is answered."""
    rng, actors = scope.rng, _actors(scope)
    some = rng.sample(actors, rng.randint(1, min(3, len(actors))))
    far = {*(scope.struck if rng.random() < 0.5 else some)} or {*some}
    return triangles([*far], scope.nodes, rng.choice(LENGTHS), _times(scope), rng)


def _any(scope: Scope) -> list[ScriptedMessage]:
    most = scope.rng.choice(LENGTHS)
    return script_among(_actors(scope), scope.nodes, most, _times(scope), scope.rng)


STYLES = (
    *[_crowd] * 2, *[_chorus] * 4, *[_last_words] * 3, *[_letters] * 3,
    *[_stream] * 2, _triangles, _any,
)  # fmt: skip


def _times(scope: Scope) -> Callable[[], float]:
    """Times around some moments, or around one; or while faults last."""
    rng, width = scope.rng, scope.rng.choice(WIDTHS) * scope.beat
    near = scope.time() if rng.random() < 0.3 else None
    lasting = scope.timed
    while_ = rng.choice([0.0, 0.5]) if lasting else 0.0

    def when() -> float:
        if rng.random() < while_:
            return rng.uniform(*scope.span(rng.choice(lasting)))
        at = scope.time() if near is None else near
        return max(0.0, at + rng.uniform(-1, 0.5) * width)

    return when


def _actors(scope: Scope) -> list[int]:
    """A few processes: those that faults strike, some at which something happened, any other."""
    drawn = [*scope.struck, scope.any(), scope.any()]
    if scope.moments:
        drawn += [scope.moment().node, scope.moment().node]
    scope.rng.shuffle(drawn)
    return list(dict.fromkeys(drawn))[:MOST_ACTORS]
