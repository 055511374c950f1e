"""What a guest asks of its host before it boots."""

import resource
from pathlib import Path

import pytest

from testbed.engines import needs
from testbed.engines.virtual.errors import GuestMemoryError
from testbed.engines.virtual.memory import FILES, require_files


@pytest.mark.parametrize("most", [1024, FILES, resource.RLIM_INFINITY])
def test_a_guest_that_would_run_out_of_files_is_refused(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (most, most))
    if most != 1024:
        require_files()
        return
    with pytest.raises(GuestMemoryError, match="needs 2048 open files and may have 1024"):
        require_files()
    assert not needs.guest_memory().ok


def test_a_container_hides_the_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(self: Path) -> str:
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "read_text", hidden)
    assert not needs.backlog().ok
