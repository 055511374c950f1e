"""The grader's side of the wall: a zygote, and the cells that it forks."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from testbed.errors import UserError
from testbed.grade.inside.frames import FrameError, Frames

ZYGOTE = Path(__file__).parent / "inside" / "zygote.py"
WAIT_S = (
    300.0  # for one answer; a call that computes or waits for long is ended before, by the cell
)
LONGEST_SENTENCE = 400
MEDDLES = "it meddles with the pipe to the grader"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{5,}")
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


class CellError(Exception):
    """A submission did something wrong, in its own words made harmless."""

    def __init__(self, sentence: str, stuck: bool = False) -> None:
        super().__init__(sentence)
        self.stuck = stuck


def harmless(sentence: Any) -> str:
    """What a cell says: one line, the same on every machine, that cannot play with a terminal."""
    text = _HIDDEN.sub(" ", _ADDRESS.sub("0x…", str(sentence)))
    return text if len(text) <= LONGEST_SENTENCE else f"{text[:LONGEST_SENTENCE]}…"


class Cell:
    """One process behind the wall, and a pipe to it."""

    def __init__(self, cells: Cells, pid: int, pipe: socket.socket) -> None:
        self._cells, self._pid, self._pipe = cells, pid, pipe
        self._frames = Frames(pipe.recv, pipe.send)
        self._ended = False

    def __getstate__(self) -> int:
        return self._pid  # what the explorer may know of it

    def ask(self, *request: Any) -> list[Any]:
        """What the cell answers; CellError if it fails, or is not there any more."""
        try:
            self._frames.put(request)
            answer = self._frames.get()
        except TimeoutError:
            raise CellError(f"it does not answer within {WAIT_S:g} s", stuck=True) from None
        except (FrameError, OSError):
            raise self._cause() from None
        if not isinstance(answer, list) or not answer:
            raise CellError(MEDDLES)
        if answer[0] in ("failed", "stuck"):
            raise CellError(harmless(answer[-1]), stuck=answer[0] == "stuck")
        return answer

    def await_seal(self) -> None:
        """Wait until the wall is up; without it nothing is loaded."""
        with suppress(FrameError, OSError):
            if self._frames.get() == "sealed":
                return
        raise UserError(
            "submissions cannot be run safely here: the kernel refuses a seccomp filter, or this is "
            "neither x86-64 nor ARM64"
        )

    def _cause(self) -> CellError:
        """Why it does not answer as it should: it has ended, or what it says makes no sense."""
        status, _ = self.end()
        if os.WIFEXITED(status):
            return CellError("it ends its process")
        match what := signal.Signals(os.WTERMSIG(status)):
            case signal.SIGKILL:  # it was there to be killed
                return CellError(MEDDLES)
            case signal.SIGPROF:
                return CellError("a call does not come to an end", stuck=True)
            case signal.SIGXCPU:
                return CellError("it uses too much processor time", stuck=True)
        return CellError(f"its process crashes ({what.name})")

    def end(self) -> tuple[int, float]:
        """Kill it; how it ended, and the processor time that it used in seconds."""
        if self._ended:
            return 0, 0.0
        self._ended = True
        status, used = self._cells.request(["end", self._pid])
        self._pipe.close()  # not before, or it might end by itself
        return int(status), float(used)


class Cells:
    """The zygote of one grader. In a context: it ends with it, and all cells too."""

    def __enter__(self) -> Self:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "1",
            "LC_ALL": "C.UTF-8",
        }
        with theirs:
            self._zygote = subprocess.Popen(
                [sys.executable, "-s", "-P", str(ZYGOTE)],
                stdin=theirs.fileno(),
                env=environment,
                cwd="/",
                start_new_session=True,  # Ctrl-C is the grader's
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        with suppress(ProcessLookupError):
            os.killpg(self._zygote.pid, signal.SIGKILL)  # and whatever it has forked
        self._zygote.wait()

    def cell(self, memory_mb: int, processor_s: int) -> Cell:
        """A new cell, sealed and empty."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.settimeout(WAIT_S)
            asked = json.dumps(["cell", memory_mb, processor_s]).encode()
            socket.send_fds(self._control, [asked], [theirs.fileno()])
            pid = int(json.loads(self._answer()))
        ours.settimeout(WAIT_S)
        cell = Cell(self, pid, ours)
        cell.await_seal()
        return cell

    def request(self, asked: list[Any]) -> Any:
        """Ask the zygote something."""
        self._control.send(json.dumps(asked).encode())
        return json.loads(self._answer())

    def _answer(self) -> bytes:
        data = self._control.recv(4096)
        if not data:
            raise UserError(
                f"{ZYGOTE.name} ended, which runs submissions; see what it printed above"
            )
        return data
