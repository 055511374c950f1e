"""A warm interpreter that forks cells: ``python zygote.py`` with a Unix socket as standard input.

The grader sends ``["cell", memory_mb, processor_s]`` with the descriptor of a pipe, and is told the
process id; ``["end", pid]`` kills a cell and tells the processor time that it used. This process
never sees code of a submission, and was executed anew, so that no memory of the grader, with its
secret, is in it or in its forks.

It has only those modules of the testbed that a protocol needs. The packages' own ``__init__`` is not
executed, and afterwards no more of them can be found: the protocols that come with the testbed are
not in here."""

import ctypes
import gc
import json
import os
import random
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

ROOT = Path(__file__).parents[3]
HOLLOW = (
    *("testbed", "testbed.protocols", "testbed.node", "testbed.packets", "testbed.plugins"),
    *("testbed.explore", "testbed.grade", "testbed.grade.inside"),
)
NOBODY = 65534
PR_SET_PDEATHSIG = 1
LONGEST_REQUEST = 4096


def bring_up() -> Any:
    """Import what cells need; the module ``cell``."""
    for name in HOLLOW:
        module: Any = ModuleType(name)
        module.__path__ = [str(ROOT / name.replace(".", "/"))]
        sys.modules[name] = module
        above, _, last = name.rpartition(".")
        if above:
            setattr(sys.modules[above], last, module)
    for name in ("base", "wire"):
        part = import_module(f"testbed.protocols.{name}")
        offered = {n: v for n, v in vars(part).items() if n[:1].isupper()}
        vars(sys.modules["testbed.protocols"]).update(offered)
    cell = import_module("testbed.grade.inside.cell")
    imports = import_module("testbed.grade.inside.imports")
    for name in (*imports.STANDARD, imports.NUMPY, "encodings.latin_1", "encodings.ascii"):
        import_module(name)
    for name in HOLLOW:
        sys.modules[name].__path__ = []
    return cell


def die_with(parent: int) -> None:
    """Be killed when the parent ends, in whatever way."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def main() -> None:
    """Serve the grader until it closes the socket."""
    with socket.socket(fileno=os.dup(0)) as control:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.close(nothing)
        die_with(os.getppid())
        cell = bring_up()
        if os.getuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        gc.collect()
        gc.freeze()  # or the first collection in a cell would copy every page
        random.seed(0)
        while request := socket.recv_fds(control, LONGEST_REQUEST, 1):
            data, descriptors, _, _ = request
            if not data:
                return
            match json.loads(data):
                case ["cell", int(memory_mb), int(processor_s)]:
                    me, pid = os.getpid(), os.fork()
                    if pid == 0:
                        die_with(me)
                        control.close()
                        _live(cell, descriptors[0], (memory_mb, processor_s))
                    os.close(descriptors[0])
                    control.send(json.dumps(pid).encode())
                case ["end", int(pid)]:
                    os.kill(pid, signal.SIGKILL)
                    _, status, used = os.wait4(pid, 0)
                    seconds = used.ru_utime + used.ru_stime
                    control.send(json.dumps([status, seconds]).encode())


def _live(cell: Any, descriptor: int, limits: tuple[int, int]) -> NoReturn:
    try:
        cell.live(descriptor, *limits)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
