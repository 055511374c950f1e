"""A protocol that fails is told in one sentence that says where."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UserError
from testbed.protocols import Message, Overlay, Send, SetTimer
from testbed.protocols.broken import BROKEN
from testbed.runs.directory import RunDirectory
from tests.experiments import SMALL, parsed, run


class Raises(Overlay):
    def receive(self, message: Message, sender: int, now: int) -> Iterator[Any]:
        raise KeyError("who")


class NoEffect(Overlay):
    def receive(self, message: Message, sender: int, now: int) -> Iterator[Any]:
        yield None


class ToNobody(Overlay):
    def receive(self, message: Message, sender: int, now: int) -> Iterator[Any]:
        yield Send((99,), message)


class Backwards(Overlay):
    def receive(self, message: Message, sender: int, now: int) -> Iterator[Any]:
        yield SetTimer("past", -5)


@pytest.mark.parametrize(
    ("protocol", "what"),
    [
        (Raises, r"KeyError: 'who' \(.*test_blame.py, line 18: raise KeyError"),
        (NoEffect, "yields None, which is not an effect"),
        (ToNobody, "99"),
        (Backwards, ""),
    ],
)
def test_what_a_protocol_does_wrong_is_one_sentence(
    protocol: type[Overlay], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BROKEN, "overlay-odd", protocol)
    monkeypatch.setattr(protocol, "name", "overlay-odd")
    with pytest.raises(
        UserError, match=rf"overlay-odd failed in process \d at .* ms on receiving .*{what}"
    ):
        run(parsed(SMALL, protocol={"name": "overlay-odd"}), tmp_path)
    assert RunDirectory(tmp_path / "small" / "latest").status == "failed"
