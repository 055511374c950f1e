"""Finds what scripts/kernel has built: the user-mode kernel and the two programs around it."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.virtual.errors import KernelNotBuiltError
from testbed.errors import SETUP

_SOURCES = Path(__file__).parent


@dataclass(frozen=True)
class Release:
    """What differs between the releases of the kernel."""

    name: str
    can_leave_untraced: bool  # programs in the guest can run without being traced, from 6.16 on
    statistics_at: int  # bytes of kernel_cpustat before the times (include/linux/kernel_stat.h)


# What scripts/kernel builds, the best first.
RELEASES = (Release("7.2", True, 32), Release("6.12", False, 0))


@dataclass(frozen=True)
class Kernel:
    """A user-mode kernel that is ready to boot."""

    linux: Path  # the kernel, an ordinary program
    init: Path  # the first process in the guest
    guard: Path  # the process on the host that ends the guest when its owner is gone
    symbols: Path  # the addresses of the kernel's variables, as printed by nm
    release: Release

    @property
    def version(self) -> str:
        """The version of the Debian package that it was built from."""
        return self.linux.parent.name.rpartition("-")[0]


def cache_directory() -> Path:
    """The directory in which scripts/kernel puts its builds; with sudo that of the calling user."""
    user = os.environ.get("SUDO_USER") if os.geteuid() == 0 else None
    home = Path(f"~{user}").expanduser() if user else Path.home()
    base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "causal-testbed" / "kernel"


def find_kernel(cache: Path | None = None) -> Kernel:
    """The best kernel that was built from this checkout's configuration and patches."""
    cache = cache or cache_directory()
    if kernels := built_kernels(cache):
        return kernels[0]
    raise KernelNotBuiltError(
        f"The virtual-time kernel is not built (nothing that fits in {cache}): {SETUP}."
    )


def built_kernels(cache: Path | None = None) -> list[Kernel]:
    """A kernel of each release that was built from this checkout's files, the best first."""
    cache = cache or cache_directory()
    helpers = cache / f"helpers-{_hash('guard.c', 'init.c')}"
    kernels = []
    for release in RELEASES if (helpers / "init").exists() else ():
        own = sorted(path.name for path in _SOURCES.glob(f"kernel-{release.name}.*"))
        name = f"{release.name}.*-{_hash('kernel.config', 'kernel.patch', *own)}"
        found = cache.glob(f"{name}/linux")
        if newest := max(found, key=lambda path: path.stat().st_mtime, default=None):
            symbols = newest.with_name("symbols")
            kernels.append(Kernel(newest, helpers / "init", helpers / "guard", symbols, release))
    return kernels


def _hash(*names: str) -> str:
    """The name of a build from these files, as in scripts/kernel."""
    content = b"".join((_SOURCES / name).read_bytes() for name in names)
    return hashlib.sha256(content).hexdigest()[:12]
