"""Finds what scripts/kernel has built: the user-mode kernel and the two programs around it."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.virtual.errors import KernelNotBuiltError
from testbed.errors import SETUP

_SOURCES = Path(__file__).parent


@dataclass(frozen=True)
class Kernel:
    """A user-mode kernel that is ready to boot."""

    linux: Path  # the kernel, an ordinary program
    init: Path  # the first process in the guest
    guard: Path  # the process on the host that ends the guest when its owner is gone
    symbols: Path  # the addresses of the kernel's variables, as printed by nm


def cache_directory() -> Path:
    """The directory in which scripts/kernel puts its builds; with sudo that of the calling user."""
    user = os.environ.get("SUDO_USER") if os.geteuid() == 0 else None
    home = Path(f"~{user}").expanduser() if user else Path.home()
    base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "causal-testbed" / "kernel"


def find_kernel(cache: Path | None = None) -> Kernel:
    """The newest kernel that was built from this checkout's configuration and patch."""
    cache = cache or cache_directory()
    helpers = cache / f"helpers-{_hash('guard.c', 'init.c')}"
    kernels = cache.glob(f"*-{_hash('kernel.config', 'kernel.patch')}/linux")
    newest = max(kernels, key=lambda path: path.stat().st_mtime, default=None)
    if newest is None or not (helpers / "init").exists():
        raise KernelNotBuiltError(
            f"The virtual-time kernel is not built (nothing that fits in {cache}): {SETUP}."
        )
    return Kernel(newest, helpers / "init", helpers / "guard", newest.with_name("symbols"))


def _hash(*names: str) -> str:
    """The name of a build from these files, as in scripts/kernel."""
    content = b"".join((_SOURCES / name).read_bytes() for name in names)
    return hashlib.sha256(content).hexdigest()[:12]
