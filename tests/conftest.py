"""Settings of all tests."""

import math
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from testbed.commands import progress
from tests.command_line import CommandLine

# A loaded machine is no failure. CI draws the same examples each time; elsewhere they are fresh.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark for all tests of a process; a session that they open themselves is this one."""
    from testbed.digest import session

    with session("local[2]", small=True) as running:
        yield running


@pytest.fixture
def testbed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line, which does not say how far it is, however slow the machine may be."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", math.inf)
    return CommandLine(capsys)
