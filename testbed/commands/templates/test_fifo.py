"""Tests of Fifo: ``python -m pytest`` runs them."""

from pathlib import Path

import pytest

from testbed.explore import explore
from testbed.plugins import find_protocol

PROTOCOL = find_protocol(str(Path(__file__).with_name("fifo.py")))


def test_two_processes_deliver_everything_in_order() -> None:
    """Two processes can do nothing wrong that FIFO order does not prevent."""
    assert explore(PROTOCOL, nodes=2, messages=3).verdict == "valid"


@pytest.mark.xfail(strict=True, reason="FIFO order is not causal order; when yours is, remove this")
def test_three_processes_keep_causal_order() -> None:
    """All executions of a small system; a counter-example says what to mend."""
    found = explore(PROTOCOL, nodes=3, messages=3)
    assert found.verdict == "valid", found.counter_example and found.counter_example.wrong.sentence
