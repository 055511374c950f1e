"""The command line of the testbed, called in the process of the tests."""

import json
from typing import Any, NamedTuple

import pytest

from testbed.cli import main


class Said(NamedTuple):
    """What a command printed."""

    out: str
    err: str

    def json(self) -> Any:
        """The value that it printed as JSON."""
        return json.loads(self.out)


class CommandLine:
    """Calls ``testbed`` with words; the exit status must be the one that is expected."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object, status: int = 0) -> Said:
        ended = main([str(word) for word in words])
        said = Said(*self.capsys.readouterr())
        assert ended == status, said
        return said
