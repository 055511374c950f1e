"""Forged verdicts: a submission that lies about itself gains nothing."""

from testbed.grade import Grade
from tests.grade.conftest import Grading, causal


def scores(grade: Grade) -> dict[str, int]:
    """Points by tier."""
    return {result.tier: result.score for result in grade.results}


def test_promises_are_the_labs(grading: Grading) -> None:
    """A protocol that says that it may lose messages is not excused."""
    found = grading(causal(body="optimistic = True"))
    assert found.score == 0
    assert "its class says optimistic = True; in this lab it must be False" in found.sentence


def test_notes_are_not_events_of_the_log(grading: Grading) -> None:
    """A process that notes its own crash and falls silent is not taken for crashed."""
    head = "from testbed.protocols import Note"
    found = grading(causal(head=head, receive='yield Note("crash", {}); return'))
    assert scores(found) == dict(zip(scores(found), (10, 0, 0, 0, 0), strict=True))


def test_counters_are_not_figures(grading: Grading) -> None:
    """Twice the bytes, and a counter of the figure's name that would make up for it."""
    head = "from testbed.protocols import Count"
    text = causal(head=head, receive='yield Count("control_bytes", -10**6)')
    found = grading(text.replace("4 * len", "8 * len").replace("}I", "}Q"))
    assert "control_bytes_per_message is 96" in found.results[-1].sentence


def test_control_information_in_the_payload_is_counted(grading: Grading) -> None:
    """And so is what is added to a payload of the application."""
    text = causal()
    smuggled = text.replace(
        "message = Stamped(self.me, self.clock[self.me], payload,",
        ("message = Stamped(self.me, self.clock[self.me], payload + bytes(20),"),
    ).replace("yield Deliver(message)", "yield Deliver(Message(self.me, message.seq, payload))")
    smuggled = smuggled.replace(
        "yield Deliver(ready)",
        "yield Deliver(Message(ready.source, ready.seq, ready.payload[:-20]))",
    )
    budget = grading(smuggled).results[-1]
    assert "control_bytes_per_message is" in budget.sentence
    assert budget.score == 0


def test_another_payload_is_told(grading: Grading) -> None:
    """Delivered is what was multicast."""
    text = causal().replace(
        "yield Deliver(ready)", 'yield Deliver(Message(ready.source, ready.seq, b"forged"))'
    )
    assert "with another payload than was multicast" in grading(text).sentence


def test_processes_share_nothing(grading: Grading) -> None:
    """What one writes into a module is not there for another, and is refused besides."""
    text = causal(
        head="SENT = []",
        receive="",
        ready="message.seq == self.clock[message.source] + 1 and message.id not in SENT",
    ).replace("stamp = tuple(self.clock)", "stamp = tuple(self.clock); SENT.append(self.me)")
    found = grading(text.replace("        \n        if message.seq", "        if message.seq"))
    assert "SENT has changed while processes ran" in found.sentence
    assert found.score == 10


def test_one_state_for_all_is_one_behaviour(grading: Grading) -> None:
    """A protocol that hides its state from the explorer is explored as one that has none."""
    hidden = causal(
        head="class Hidden:\n    def __getstate__(self):\n        return 0\n"
        "    def __deepcopy__(self, memo):\n        return self\n",
        receive="self.hidden.got = True",
    ).replace("self.waiting = []", "self.waiting = []; self.hidden = Hidden()")
    hiding_all = hidden.replace(
        "    def ready(self",
        "    @property\n    def __dict__(self):\n        return {}\n\n    def ready(self",
    )
    assert grading(hiding_all).results[1].score == 0
