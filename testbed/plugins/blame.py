"""Where in a protocol's code something went wrong, from the exception that it led to."""

import linecache
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, GeneratorType
from typing import Any

from testbed.errors import ProtocolError, UserError
from testbed.plugins.limits import Line, StuckError, limited, time_limit
from testbed.plugins.source import SOURCE, Source
from testbed.protocols import Protocol
from testbed.protocols.channel import Reliable

PROJECT = Path(__file__).parents[2]
# What code under test may raise: everything but what a user or the system asks for.
FAILURES = (Exception, StuckError, SystemExit)


def words(error: BaseException) -> str:
    """What an exception says, in one line."""
    if isinstance(error, SystemExit):
        return "it ends the program"
    if isinstance(error, StuckError):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split())


def lines_of(error: BaseException) -> list[Line]:
    """The calls that an exception went through, the innermost last, each with its line."""
    if isinstance(error, StuckError) and error.at:
        return list(error.at)
    lines = list(traceback.walk_tb(error.__traceback__))
    if isinstance(error, RecursionError):  # the last call may not have come to its first line
        while lines and lines[-1][1] == lines[-1][0].f_code.co_firstlineno:
            lines.pop()
    return lines


def last_line(lines: Sequence[Line]) -> Line | None:
    """The innermost of these calls that is in a protocol's code."""
    return next((line for line in reversed(lines) if _is_protocol(line[0])), None)


def yielding(effects: Any) -> Line | None:
    """Where a protocol stands that has yielded an effect and waits to go on."""
    found = None
    while isinstance(effects, GeneratorType) and effects.gi_frame is not None:
        frame = effects.gi_frame
        if _is_protocol(frame):
            found = frame, frame.f_lineno
        effects = effects.gi_yieldfrom
        if effects is None and is_channel(frame):  # what it translates
            effects = frame.f_locals.get("effects")
    return found


def is_channel(frame: FrameType) -> bool:
    """Whether this is the channel beneath a protocol, which performs the protocol's effects."""
    package = Reliable.__module__.rpartition(".")[0]
    return str(frame.f_globals.get("__name__")).startswith(package)


def quoted(line: Line | None) -> str:
    """A line as a sentence ends with it: its file, number and text; nothing if there is none."""
    if line is None:
        return ""
    frame, number = line
    file, source = Path(frame.f_code.co_filename), frame.f_globals.get(SOURCE)
    if isinstance(source, Source):
        text = source.text.splitlines()[number - 1].strip()
    else:
        text = linecache.getline(str(file), number).strip()
    name = file.relative_to(PROJECT) if file.is_relative_to(PROJECT) else file.name
    return f" ({name}, line {number}: {text})" if text else f" ({name}, line {number})"


@contextmanager
def making(protocol: type[Protocol]) -> Iterator[None]:
    """Tell what goes wrong while an instance of a protocol is made; values may be out of range."""
    try:
        with time_limit():
            yield
    except (UserError, ValueError, OSError, MemoryError):
        raise
    except FAILURES as error:
        where = quoted(last_line(lines_of(error)))
        raise ProtocolError(
            f"{protocol.name} fails as it is made: {words(error)}{where}"
        ) from error


@limited
def make(protocol: type[Protocol], *arguments: Any) -> Protocol:
    """An instance of a protocol."""
    with making(protocol):
        return protocol(*arguments)


def _is_protocol(frame: FrameType) -> bool:
    if SOURCE in frame.f_globals:
        return True
    return isinstance(frame.f_locals.get("self"), Protocol) and not is_channel(frame)
