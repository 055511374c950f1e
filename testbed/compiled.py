"""Parts of the testbed that run as machine code where ``scripts/setup`` found a compiler.

Their source is the Python that one reads, and they do the same, faster; without a compiler, or with
``TESTBED_PURE=1`` in the environment, they run as any Python. What was compiled is kept in the virtual
environment under a hash of all sources that it rests on, so that what is stale is never used.
"""

import os
import sys
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

GROUP = "testbed_compiled"
_SIMULATOR = "testbed.engines.simulate"
MODULES = (
    *(f"{_SIMULATOR}.{name}" for name in ("channels", "heap", "links", "network", "packed_heap")),
    "testbed.node.meter",
    "testbed.node.node",
    "testbed.plugins.calls",
    "testbed.protocols.ks_log",
)
# What these import of the testbed: where its types change, they must be compiled again.
USED = (
    "testbed.compiled",
    "testbed.faults.kinds",
    "testbed.node.effects",
    "testbed.node.environment",
    "testbed.node.log",
    "testbed.node.trouble",
    "testbed.packets.framing",
    "testbed.protocols.base",
    "testbed.protocols.wire",
    "testbed.topologies.channels",
    "testbed.topologies.routing",
)
_PROJECT = Path(__file__).parent.parent


class _Finder(MetaPathFinder):
    """Finds the modules that are compiled."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in MODULES and name != f"{GROUP}__mypyc":
            return None
        if (place := compiled()) is None:
            return None
        return spec_from_file_location(name, _library(place, name))


def install() -> None:
    """From now on, import what is compiled if there is any."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


@cache
def compiled() -> Path | None:
    """The directory with the compiled modules of these very sources, if they may be used."""
    place = directory()
    return place if "TESTBED_PURE" not in os.environ and place.is_dir() else None


def directory() -> Path:
    """Where they are once they have been compiled."""
    digest = sha256(sys.implementation.cache_tag.encode())
    for module in (*MODULES, *USED):
        digest.update(source(module).read_bytes())
    return Path(sys.prefix) / "compiled" / digest.hexdigest()[:16]


def source(module: str) -> Path:
    """The file of a module."""
    return _PROJECT / f"{module.replace('.', '/')}.py"


def _library(place: Path, module: str) -> Path:
    return place / f"{module.replace('.', '/')}{EXTENSION_SUFFIXES[0]}"
