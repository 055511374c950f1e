"""A submission on emulated hosts: in a guest, in virtual time, traced.

There the code runs as root beside what writes the logs, and could write logs of its own. So this can
only take points away: it is asked for once the same experiment was right in the simulator, behind the
wall, and what the guest says counts if it says that something is wrong. Students are told the
sentence of a protocol that failed, or of the oracle; what else goes wrong in there, the teacher
alone, for a guest can put anything into its files."""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from testbed.engines import needs
from testbed.errors import ProtocolError, UserError
from testbed.experiment import load
from testbed.grade.cells import harmless
from testbed.grade.remote import Remote
from testbed.plugins import stand_in
from testbed.plugins.source import SOURCE
from testbed.progress import silent
from testbed.run import run_experiment

FAILED = "the run on emulated hosts did not come to a result"


def available() -> bool:
    """Whether this machine has what a guest needs."""
    return all(
        ability.ok for ability in (needs.mininet(), needs.openvswitch(), needs.virtual_kernel())
    )


def emulated(protocol: type[Remote], file: Path) -> str:
    """What is wrong with a protocol in a guest; nothing if all is well, or if there can be no guest."""
    if not available():
        return ""
    with _with_source(protocol) as emulating, tempfile.TemporaryDirectory(prefix="grade-") as runs:
        (experiment, *_) = load(file, protocol={"name": emulating.name}, engine="virtual")
        try:
            with _memory():
                run = run_experiment(experiment, Path(runs), silent)
        except ProtocolError as error:
            return f"on emulated hosts: {harmless(str(error).replace(runs, 'runs'))}"
        except (UserError, OSError, ValueError, KeyError, TypeError):
            return FAILED
        if run.verdict.verdict == "valid":
            return ""
        return f"on emulated hosts: {harmless(run.verdict.explain(1)[-1])}"


@contextmanager
def _with_source(protocol: type[Remote]) -> Iterator[type[Remote]]:
    """The class with the text of the submission, which a run directory keeps and a guest loads."""
    source = protocol.bench.source
    assert source is not None
    module = ModuleType(f"submitted_{source.sha256[:12]}")
    setattr(module, SOURCE, source)
    sys.modules[module.__name__] = module
    emulating: type[Remote] = type(source.cls, (protocol,), {"__module__": module.__name__})
    emulating.name = protocol.name
    try:
        # Whatever reads the run directory finds this class, and does not load the file.
        with stand_in(emulating, f"{source.kept}:{source.cls}"):
            yield emulating
    finally:
        del sys.modules[module.__name__]


@contextmanager
def _memory() -> Iterator[None]:
    """A guest reserves more address space than a grader may have; it has a limit of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
