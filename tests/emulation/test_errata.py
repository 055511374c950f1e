"""Errata on emulated hosts: a sample, as printed and repaired."""

import pytest

from scripts.reproductions.errata.chapter import outcome

pytestmark = pytest.mark.emulation


@pytest.mark.parametrize("name", ["overlay", "leaving"])
def test_an_erratum_is_shown_in_virtual_time(name: str) -> None:
    assert outcome((name, "virtual"))["shown"]
