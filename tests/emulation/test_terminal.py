"""Mininet's command line without root: `testbed shell` in a guest, typed and from a pipe."""

import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.emulation

LINE = """
name = "line"
protocol = { name = "timestamp" }
topology = { model = "line", nodes = 2 }
links = { delay_ms = 30, bandwidth_mbit = 10 }
workload = { model = "bursts", senders = 1 }
"""
PATIENCE_S = 300


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    file = tmp_path / "line.toml"
    file.write_text(LINE)
    return [sys.executable, "-m", "testbed", "shell", str(file), "--engine", "virtual"]


class Person:
    """Sits at a terminal on which a command runs."""

    def __init__(self, command: list[str]) -> None:
        self.terminal, inside = pty.openpty()
        self.before = termios.tcgetattr(inside)
        self.inside = inside
        self.process = subprocess.Popen(
            command, stdin=inside, stdout=inside, stderr=inside, start_new_session=True
        )
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def see(self, text: str) -> str:
        """What was shown up to a text, once it is there."""
        limit = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < limit, self.seen
            if select.select([self.terminal], [], [], 1)[0]:
                self.seen += os.read(self.terminal, 65536).decode(errors="replace")
            else:
                assert self.process.poll() is None, self.seen
        shown, _, self.seen = self.seen.partition(text)
        return shown


def test_a_person_types_stops_a_command_and_leaves(command: list[str]) -> None:
    person = Person(command)
    try:
        person.see("hosts and switches: 2, links: 1")
        person.see("mininet> ")
        person.type("h0 ping h1\r")
        for _ in range(2):
            person.see("bytes from 10.0.0.2")
            delay_ms = float(person.see(" ms").rpartition("time=")[2])
            assert 60 <= delay_ms < 1000  # there and back; a busy machine takes longer
        person.type("\x03")
        assert "0% packet loss" in person.see("mininet> ")
        person.type("exit\r")
        assert person.process.wait(PATIENCE_S) == 0
        assert termios.tcgetattr(person.inside) == person.before
    finally:
        person.process.kill()
        person.process.wait()


def test_commands_come_from_a_pipe(command: list[str]) -> None:
    shown = subprocess.check_output(
        command, input=b"h1 ping -c 1 h0\n", stderr=subprocess.STDOUT, timeout=PATIENCE_S
    )
    assert b"1 packets transmitted, 1 received" in shown
