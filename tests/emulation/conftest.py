"""What the tests that boot a guest share."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from testbed.engines.virtual.errors import KernelNotBuiltError
from testbed.engines.virtual.guest import GuestResult, GuestSettings, run_guest
from testbed.engines.virtual.kernel import Kernel, find_kernel
from testbed.experiment import Experiment
from testbed.run import Run
from tests import experiments

CHECKOUT = Path(__file__).parents[2]
READABLE = (CHECKOUT / "tests", CHECKOUT / "pyproject.toml")  # by programs of the tests
SAME = ("multicasts", "deliveries", "copies", "bytes", "control_bytes", "hops", "wire_bytes")


@dataclass(frozen=True)
class Finished:
    """A guest that ran to its end, and what it said."""

    result: GuestResult
    stdout: str
    stderr: str


RunGuest = Callable[..., Finished]


def in_guest(*words: object, results: Path, **settings: Any) -> Finished:
    """Run words as a command in a guest, from the checkout; keywords are its settings."""
    out, err = bytearray(), bytearray()
    chosen: dict[str, Any] = {"cwd": CHECKOUT, "timeout_s": 120, "readable": READABLE, **settings}
    where = GuestSettings(results=results, stdout=out.extend, stderr=err.extend, **chosen)
    result = run_guest([str(word) for word in words], where)
    return Finished(result, out.decode(), err.decode())


def module_in_guest(module: str, *words: object, results: Path, **settings: Any) -> Finished:
    """Run a program of this package in a guest."""
    # Mininet imports distutils, and that of setuptools is slow.
    env = {"SETUPTOOLS_USE_DISTUTILS": "stdlib"}
    command = (sys.executable, "-m", f"tests.emulation.{module}", *words)
    return in_guest(*command, results=results, env=env, **settings)


def emulated(experiment: Experiment, runs: Path, *same: str) -> tuple[Run, Run]:
    """Emulate an experiment, exactly and in causal order, and simulate it: both count the same."""
    done = experiments.run(experiment, runs)
    assert done.verdict.ok, done.verdict.explain(3)
    assert done.summary["fidelity"] == "exact"
    simulated = experiments.run(replace(experiment, engine="simulate"), runs)
    for key in same or SAME:
        assert done.summary[key] == simulated.summary[key], key
    return done, simulated


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
    return partial(in_guest, results=tmp_path / "results")
