"""How a command ends: with a status that says what README says, whatever happened in it."""

import errno
import os
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn

from testbed.commands.terminal import complain
from testbed.errors import UserError, no_exit

FAILED = 2
STDOUT = 1
SIGNALLED = 128  # and the number of the signal, as shells have it
REMEDIES = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS),
        "make room or choose another directory with --runs",
    ),
    **dict.fromkeys(
        (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
        "choose another path",
    ),
}


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: everything is stopped and put away as it is after Ctrl-C."""


def status_of(command: Callable[[], int]) -> int:
    """Run a command to its end; 0 all well, 1 a violation, 2 it could not be done."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal knows every letter
    try:
        with _ending_only_here():
            status = command()
            sys.stdout.flush()
            return status
    except UserError as error:
        complain(str(error))
    except KeyboardInterrupt as error:
        complain("interrupted")
        return SIGNALLED + (error.args[0] if isinstance(error, Terminated) else signal.SIGINT)
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # if nobody reads, rich ends so
            complain(f"a protocol, or what it uses, ended the program with status {error.code}")
    except OSError as error:
        if _nobody_reads():
            return FAILED
        if error.errno not in REMEDIES:
            return _bug(error)
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{(error.strerror or 'cannot write').lower()}; {REMEDIES[error.errno]}")
    except MemoryError:
        complain("there is not enough memory for this; a smaller experiment would fit")
    except Exception as error:
        return _bug(error)
    return FAILED


@contextmanager
def _ending_only_here() -> Iterator[None]:
    """Signals, and protocols that end the program, become exceptions."""

    def terminate(number: int, _: FrameType | None) -> NoReturn:
        raise Terminated(number)

    usual = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in usual.items():
        if handler is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, terminate)
    try:
        with no_exit():
            yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def _nobody_reads() -> bool:
    """Whether whoever read the output is gone; if so, the rest of it goes nowhere."""
    output = select.poll()
    output.register(STDOUT, 0)
    if not any(state & select.POLLERR for _, state in output.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
    return True


def _bug(error: Exception) -> int:
    with tempfile.NamedTemporaryFile(
        "w", prefix="testbed-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exception(error, file=file)
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    complain(f"this should not happen ({what}); the traceback, for a report, is in {file.name}")
    return FAILED
