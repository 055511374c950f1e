"""Tiers: what is right gets all points, and what is wrong loses those that it should."""

from tests.grade.conftest import Grading, causal


def test_a_right_protocol_has_all_points(grading: Grading) -> None:
    """Every tier says that all is well."""
    found = grading(causal())
    assert [result.score for result in found.results] == [10, 30, 20, 20, 20], found


def test_a_protocol_that_does_not_wait_is_shown_its_shortest_violation(grading: Grading) -> None:
    """In words, with a drawing, the command that repeats it and the smallest experiment."""
    found = grading(causal(ready="True"))
    loads, explored, public, hidden = found.results[:4]
    assert loads.passed
    assert explored.score == 0
    assert "delivers m(" in explored.sentence
    assert "process 2" in explored.diagram
    assert explored.repeat == "testbed explore --protocol ./protocol.py --nodes 3 --messages 2"
    assert not public.passed
    assert 'name = "./protocol.py"' in public.file
    assert "--first-seed" in public.repeat
    assert not hidden.passed
    assert "seeds are right" in hidden.sentence
    assert (hidden.file, hidden.repeat) == ("", "")  # nothing that tells the seeds
    assert hidden.aside.startswith("seed ")


def test_a_budget_that_is_exceeded(grading: Grading) -> None:
    """Clocks of eight bytes each, where the lab allows four, for each of three copies."""
    budget = grading(causal().replace("4 * len", "8 * len").replace("}I", "}Q")).results[-1]
    assert budget.score == 0
    assert "control_bytes_per_message is 96, and may be at most 48" in budget.sentence


def test_what_cannot_be_loaded_is_told_once(grading: Grading) -> None:
    """The other tiers are not tried."""
    found = grading("def broken(:\n")
    assert found.score == 0
    assert found.results[0].sentence == "protocol.py, line 1: not Python: invalid syntax"
    assert all(r.sentence.startswith("not tried: ") for r in found.results[1:])
