"""What the tests that boot a guest share."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.engines.virtual import GuestResult, GuestSettings, KernelNotBuiltError, run_guest
from testbed.engines.virtual.kernel import Kernel, find_kernel


@dataclass(frozen=True)
class Finished:
    """A guest that ran to its end, and what it said."""

    result: GuestResult
    stdout: str
    stderr: str
    results: Path


@dataclass
class Recorder:
    """Collects what a guest says."""

    data: bytearray = field(default_factory=bytearray)

    def __call__(self, data: bytes) -> None:
        self.data += data

    def __str__(self) -> str:
        return self.data.decode()


RunGuest = Callable[..., Finished]


@pytest.fixture(scope="session")
def kernel() -> Kernel:
    try:
        return find_kernel()
    except KernelNotBuiltError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture
def run(kernel: Kernel, tmp_path: Path) -> RunGuest:
    """Run words as a command in a guest; keywords are its settings."""

    def run_words(*words: str, results: Path = tmp_path / "results", **settings: Any) -> Finished:
        out, err = Recorder(), Recorder()
        result = run_guest(
            words,
            GuestSettings(results=results, stdout=out, stderr=err, **{"timeout_s": 120} | settings),
        )
        return Finished(result, str(out), str(err), results)

    return run_words
