"""A person's terminal in a guest, in real time.

No device of a guest is connected to the host. So input reaches it as files, one for each read from the
terminal, numbered from 0: a process in the guest polls for the next one and writes it to a
pseudo-terminal, on which the command runs. Output takes the same way as that of any command.
"""

import fcntl
import os
import pty
import select
import shutil
import struct
import sys
import tempfile
import termios
import threading
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testbed.engines.virtual.guest import GuestSettings, run_guest

_POLL_S = 0.02


def run_in_terminal(command: Sequence[str], memory_mb: int, readable: Sequence[Path]) -> int:
    """Run a command in a guest, on the terminal of this process or, without one, on its input."""
    with tempfile.TemporaryDirectory(prefix="causal-testbed-") as directory:
        typed = Path(directory)
        settings = GuestSettings(
            results=typed,
            virtual=False,
            memory_mb=memory_mb,
            readable=readable,
            env={"TERM": os.environ.get("TERM", "dumb")},
        )
        if not sys.stdin.isatty():
            (typed / "0").write_bytes(sys.stdin.buffer.read())
            words = ["sh", "-c", 'exec "$@" <"$0"', f"{typed}/0", *command]
            return run_guest(words, settings).returncode
        size = shutil.get_terminal_size()
        words = [sys.executable, "-m", __name__, str(typed), str(size.lines), str(size.columns)]
        with _keyboard(typed):
            return run_guest([*words, *command], settings).returncode


@contextmanager
def _keyboard(directory: Path) -> Iterator[None]:
    """Write all that is typed to a directory, in raw mode: the guest interprets every key."""
    keys = sys.stdin.fileno()
    over, end = os.pipe()
    reader = threading.Thread(target=_read_keys, args=(keys, over, directory))
    before = termios.tcgetattr(keys)
    try:
        tty.setraw(keys)
        reader.start()
        yield
    finally:
        os.close(end)
        reader.join()
        os.close(over)
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _read_keys(keys: int, over: int, directory: Path) -> None:
    number = 0
    while over not in select.select([keys, over], [], [])[0] and (text := os.read(keys, 4096)):
        part = directory / "part"
        part.write_bytes(text)
        part.rename(directory / str(number))
        number += 1


def serve(directory: Path, lines: int, columns: int, command: Sequence[str]) -> int:
    """In the guest: run a command on a pseudo-terminal, and return its exit status."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], list(command))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    number = 0
    while True:
        if select.select([terminal], [], [], _POLL_S)[0]:
            try:
                os.write(sys.stdout.fileno(), os.read(terminal, 65536))
            except OSError:  # EIO: the other end of the pseudo-terminal was closed
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        file = directory / str(number)
        if file.exists():
            os.write(terminal, file.read_bytes())
            number += 1


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
