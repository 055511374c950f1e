"""Runs in a guest: an emulation whose host process is killed or stopped in the middle of its run.

python -m tests.emulation.faulty_hosts DIRECTORY kill|stop
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from testbed.engines.mininet.emulate import emulate
from testbed.engines.mininet.hosts import supervisor
from testbed.errors import UserError
from testbed.runs.directory import RunDirectory

supervisor.PATIENCE_S = 5.0


def harm(directory: Path, number: signal.Signals) -> None:
    """Wait until the hosts run, then send one of them a signal."""
    while not (directory / "hosts" / "h3.log").exists():
        time.sleep(0.01)
    time.sleep(1.0)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _is_host(entry, directory):
            os.kill(int(entry.name), number)
            return


def _is_host(process: Path, directory: Path) -> bool:
    try:
        return os.readlink(process / "fd" / "2") == str(directory / "hosts" / "h3.log")
    except OSError:
        return False


def main() -> None:
    """Print the sentence that the emulation ends with."""
    directory = Path(sys.argv[1])
    number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[sys.argv[2]]
    threading.Thread(target=harm, args=(directory, number), daemon=True).start()
    try:
        emulate(RunDirectory(directory), lambda stage, done, of: None)
    except UserError as error:
        print(f"told: {error}")
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("none left")


if __name__ == "__main__":
    main()
