"""What goes wrong by the user's doing or the machine's, as against a bug."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

SETUP = "run scripts/setup in a checkout"  # a wheel has no scripts
# What a wheel installs only on request, and the libraries that tell whether it is there.
EXTRAS = {
    "emulation": ("scapy", "os_ken"),
    "digest": ("pyspark", "pandas", "scipy"),
    "report": ("matplotlib", "pandas"),
}


class UserError(Exception):
    """One sentence that says what is wrong, where, and what would be right; exit status 2."""


class ProtocolError(UserError):
    """A protocol failed; others may still be run."""


def read_text(file: Path) -> str:
    """The text of a file; what is no file, such as a pipe or a device, might have no end."""
    if file.exists() and not file.is_file():
        raise OSError(f"{file.name} is not a regular file")
    return file.read_text(encoding="utf-8")


def installing(extra: str) -> str:
    """The command that installs an extra, in a checkout and elsewhere."""
    return f"{SETUP}, or pip install 'causal-testbed[{extra}]'"


def missing(extra: str) -> list[str]:
    """The libraries of an extra that are not installed."""
    return [library for library in EXTRAS[extra] if find_spec(library) is None]


def require(extra: str) -> None:
    """Refuse to go on without an extra, before a library of it is imported."""
    if lacking := missing(extra):
        raise UserError(f"this needs {', '.join(lacking)}: {installing(extra)}")


@contextmanager
def no_exit() -> Iterator[None]:
    """Make ``os._exit`` an exception in this process, as ``sys.exit`` is one."""
    really_exit, here = os._exit, os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() == here:
            raise SystemExit(status)
        really_exit(status)

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = really_exit
