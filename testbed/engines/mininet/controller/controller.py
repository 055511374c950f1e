"""Starts the controller, learns from it when the rules are in place, and stops it for certain.

The controller is a fork of the process that starts it: in a guest a fresh interpreter and all that
both of them import would take seconds. It keeps none of its parent's files. It ends with the ``with``
block, and with the thread that began it: the kernel kills it when that is gone. What it has to say
to people is kept in the run directory.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Self

from testbed.engines.mininet.controller import process
from testbed.engines.mininet.controller.process import Library, Options
from testbed.engines.mininet.controller.rules import Arc
from testbed.engines.mininet.kernel.descriptors import readable
from testbed.engines.mininet.plan import CONTROLLER_PORT, switch_name
from testbed.engines.mininet.ways import Ways
from testbed.errors import UserError
from testbed.topologies.routing import Metric

LOG = "controller.log"  # in the run directory: what the controller has to say to people

_START_S = 60.0
_STOP_S = 5.0
_MOST_NAMES = 8


class ControllerError(UserError):
    """The controller could not start, has failed, or waits for a switch in vain."""


class Controller:
    """A running controller; a context manager.

    ``with Controller(run / "network.json", run) as controller:`` starts it; then switches are told
    to connect to ``controller.port`` of 127.0.0.1, and ``controller.wait_until_ready()`` returns when
    every switch has every rule.
    """

    def __init__(
        self,
        network_json: Path,
        directory: Path,
        *,
        library: Library = "auto",
        metric: Metric = "hops",
        port: int = CONTROLLER_PORT,
        ways: Ways | None = None,
    ) -> None:
        # Where it listens; 0: it chooses a free port, which stands here when it has started.
        self.port = port
        self.library = library  # which it uses, when it has started
        self.ready = False
        self.log = directory / LOG
        self.in_place: set[int] = set()  # the switches that have all of their rules
        self.down: list[Arc] = []  # the links that are down, as far as it was asked lately
        self._options = Options(network_json, directory, library, metric, port, ways)
        self._process: int | None = None
        self._listening = False
        self._unread = b""

    def __enter__(self) -> Self:
        self._pipe, said = os.pipe()
        try:
            with self.log.open("ab") as log:
                parent = os.getpid()
                self.pid = os.fork()
                if self.pid == 0:
                    _become_controller(self._options, parent, said, log.fileno())
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(said)
        self._process = os.pidfd_open(self.pid)
        try:
            self._listen_until(lambda: self._listening, _START_S)
            if not self._listening:
                raise ControllerError(
                    f"the controller has not started within {_START_S:g} s: see {self.log}"
                )
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, if it still runs, and wait until it is gone."""
        if self._process is None:
            return
        process, self._process = self._process, None
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGTERM)
            if not readable(process, _STOP_S):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        with suppress(ChildProcessError):  # somebody waited for all children
            os.waitid(os.P_PIDFD, process, os.WEXITED)
        os.close(process)
        os.close(self._pipe)

    def wait_until_ready(self, timeout_s: float = 60.0) -> None:
        """Return when all switches have all of their rules and no link is down.

        Raises a ControllerError that tells which switches or links are missing after ``timeout_s``,
        or why the controller has failed.
        """
        self._listen_until(lambda: self.ready, timeout_s)
        if not self.ready:
            raise ControllerError(f"{self._what_is_missing(timeout_s)}: see {self.log}")

    def check(self) -> None:
        """Take in what it has said; raise a ControllerError if it has failed or ended."""
        self._listen_until(lambda: False, 0.0)

    def _what_is_missing(self, timeout_s: float) -> str:
        nodes = len(json.loads(self._options.network.read_text())["nodes"])
        absent = [switch_name(node) for node in range(nodes) if node not in self.in_place]
        if absent:
            return f"after {timeout_s:g} s these switches have no rules yet: {_some(absent)}"
        links = [f"{switch_name(a)}–{switch_name(b)}" for a, b in self.down]
        if links:
            return f"after {timeout_s:g} s these links are down: {_some(links)}"
        return f"after {timeout_s:g} s some switches have not confirmed their rules"

    def _listen_until(self, enough: Callable[[], bool], timeout_s: float) -> None:
        assert self._process is not None, "the controller does not run"
        deadline = time.monotonic() + timeout_s
        while not enough():
            if not readable(self._pipe, max(0.0, deadline - time.monotonic())):
                return
            if not (data := os.read(self._pipe, 65536)):
                raise ControllerError(f"the controller has ended: see {self.log}")
            *lines, self._unread = (self._unread + data).split(b"\n")
            for line in lines:
                self._take_in(json.loads(line))

    def _take_in(self, fact: dict[str, Any]) -> None:
        match fact:
            case {"library": library}:
                self.library = library
            case {"listening": port}:
                self.port, self._listening = port, True
            case {"in_place": node}:
                self.in_place.add(node)
            case {"down": links}:
                self.down = [(a, b) for a, b in links]
            case {"ready": _}:
                self.ready = True
            case {"failed": sentence}:
                raise ControllerError(sentence)
            case _:
                raise ValueError(f"the controller said {fact}")


def _become_controller(options: Options, parent: int, stdout: int, stderr: int) -> NoReturn:
    """Be the controller, in a fork, and never come back to what the parent was doing."""
    status = 1
    gc.freeze()  # the parent's objects are here to stay: searching them would copy their pages
    try:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        # Put nothing in the place of each of the parent's files. Were they closed, their numbers
        # would be used again, and an object of the parent's that is dropped close the wrong file.
        nothing = os.open(os.devnull, os.O_RDWR)
        for file in [0, *map(int, os.listdir("/proc/self/fd"))]:
            if file not in (1, 2):
                os.dup2(nothing, file)
        sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
        status = process.main(options, parent)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
