"""The corpus: hostile files, runs, arguments and environments, and what each must come to.

A case is tried in a forked child, in a directory of its own, with the command line called as it is. It
must end with its status and say its word, in one sentence, within ten seconds of processor time.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import tomli_w

CORPUS = Path(__file__).with_name("corpus.toml")
CPU_S = 10
WALL_S = 60  # a machine may be busy
MEMORY = 3 << 30
BUGS = ("Traceback", "this should not happen", "RuntimeWarning")
SMALL: dict[str, Any] = {
    "name": "small",
    "protocol": {"name": "timestamp"},
    "topology": {"model": "ring", "nodes": 4},
    "workload": {"model": "bursts", "senders": 2, "burst": 1, "duration_ms": 2},
}


@dataclass(frozen=True)
class Case:
    """Words of a command line, what lies in its directory, and what it must come to."""

    name: str
    words: tuple[str, ...]
    status: int
    word: str = ""
    experiment: str | bytes = ""  # the text of FILE
    file: str = ""  # of the run: what is done to it
    how: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] | None = None  # if any, in a process of its own


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    case: Case
    status: int
    said: str
    seconds: float

    @property
    def wrong(self) -> str | None:
        """What is not as it must be, or None."""
        last = self.said.strip().splitlines()[-1:] or ["nothing"]
        if self.status < 0:
            return (
                f"ended by signal {-self.status} after {self.seconds:.0f} s, having said: {last[0]}"
            )
        if any(bug in self.said for bug in BUGS):
            return f"a bug: {last[0]}"
        if self.status != self.case.status:
            return f"status {self.status} instead of {self.case.status}: {last[0]}"
        if self.case.word.lower() not in " ".join(self.said.lower().split()):
            return f"does not say {self.case.word!r}: {last[0]}"
        return None


def read_corpus(file: Path = CORPUS) -> list[Case]:
    """All cases."""
    corpus = tomllib.loads(file.read_text(encoding="utf-8"))
    return [
        case
        for kind, read in READERS.items()
        for table in corpus[kind]
        for case in read(table, str(table.get("word", "")), table.get("status", 2))
    ]


def _edits(table: dict[str, Any], word: str, status: int) -> Iterator[Case]:
    """Values of one key of an experiment file, or of tables that go with it."""
    for value in table["values"]:
        document = json.loads(json.dumps(SMALL)) | table.get("with", {})
        *path, last = table["at"].split(".")
        place = document
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
        name = f"{table['at']} = {str(value)[:40]}"
        words = table.get("words", "run FILE --no-digest").split()
        yield Case(name, tuple(words), status, word, tomli_w.dumps(document))


def _texts(table: dict[str, Any], word: str, status: int) -> Iterator[Case]:
    """Texts of an experiment file, each given to several commands."""
    for text in table["texts"]:
        whole = text * table.get("times", 1)
        content = whole.encode(table.get("encoding", "utf-8"))
        for words in table.get("words", ["run FILE --no-digest", "sweep FILE", "topology FILE"]):
            yield Case(f"{words}: {text[:40]!r}", tuple(words.split()), status, word, content)


def _damages(table: dict[str, Any], word: str, status: int) -> Iterator[Case]:
    """What is done to the files of a run, which is then checked and compared."""
    for file in table["files"]:
        for words in table.get("words", ["check RUN", "compare RUN OTHER"]):
            done = ", ".join(f"{key} {str(value)[:30]!r}" for key, value in table["how"].items())
            name = f"{words}: {file}: {done}"
            yield Case(name, tuple(words.split()), status, word, "", file, table["how"])


def _captures(table: dict[str, Any], word: str, status: int) -> Iterator[Case]:
    """Captures, in hexadecimal, and what the emulation said of them."""
    words = ("export", "RUN", "--pcapng", "-o", "out.pcapng")
    for content in table["hex"]:
        how = {"hex": content, "emulation": table.get("emulation", '{"interfaces": {}}')}
        name = f"capture {content[:40]} {table.get('emulation', '')}"
        yield Case(name, words, status, word, "", "packets/x.pcap", how)


def _words(table: dict[str, Any], word: str, status: int) -> Iterator[Case]:
    """Command lines, in an environment if one is given."""
    environment = table.get("environment")
    for words in table["lines"]:
        name = f"{words} {environment or ''}".strip()
        text = tomli_w.dumps(SMALL)
        yield Case(name, tuple(words.split()), status, word, text, environment=environment)


READERS = {
    "edit": _edits,
    "text": _texts,
    "damage": _damages,
    "capture": _captures,
    "words": _words,
}


class Bench:
    """Tries cases, each in a fresh directory with FILE, RUN, OTHER and strange things in it."""

    def __init__(self) -> None:
        from testbed import cli

        for command in cli.COMMANDS:  # so that children need not
            import_module(f"testbed.commands.{command}")
        self._main = cli.main
        self._top = Path(tempfile.mkdtemp(prefix="hostile-"))
        (self._top / "small.toml").write_text(tomli_w.dumps(SMALL))
        made = self._fork(("run", "small.toml", "--no-digest", "--runs", "runs"), self._top)
        assert made[0] == 0, made
        self._run = (self._top / "runs" / "small" / "latest").resolve()

    def close(self) -> None:
        """Remove all that was made."""
        shutil.rmtree(self._top)

    def attempt(self, case: Case) -> Outcome:
        """Try a case."""
        place = self._top / "case"
        self._lay_out(case, place)
        words = [str(place / word) if word in NAMES else word for word in case.words]
        begun = time.monotonic()
        if case.environment is None:
            status, said = self._fork(words, place)
        else:
            status, said = _execute(words, place, case.environment)
        shutil.rmtree(place)
        return Outcome(case, status, said, time.monotonic() - begun)

    def _lay_out(self, case: Case, place: Path) -> None:
        place.mkdir()
        text = case.experiment
        (place / "FILE").write_bytes(text if isinstance(text, bytes) else text.encode())
        for name in ("RUN", "OTHER"):
            shutil.copytree(self._run, place / name)
        (place / "LOOP").symlink_to(place / "LOOP")
        (place / "ZERO").symlink_to("/dev/zero")
        (place / "EMPTY").write_bytes(b"")
        (place / "DIRECTORY").mkdir()
        os.mkfifo(place / "FIFO")
        if case.file:
            _damage(place / "RUN" / case.file, case.how)

    def _fork(self, words: Any, place: Path) -> tuple[int, str]:
        said = self._top / "said"
        pid = os.fork()
        if pid == 0:
            status = 99
            try:
                _limit()
                os.chdir(place)
                out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                for number in (1, 2):
                    os.dup2(out, number)
                sys.stdout = os.fdopen(1, "w", closefd=False)
                sys.stderr = os.fdopen(2, "w", closefd=False)
                status = _status(self._main, list(words))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        return _wait(pid), said.read_text(errors="replace")


NAMES = {"FILE", "RUN", "OTHER", "LOOP", "ZERO", "EMPTY", "DIRECTORY", "FIFO", "NOWHERE"}


def _status(main: Any, words: list[str]) -> int:
    try:
        return int(main(words))
    except SystemExit as error:
        return int(error.code or 0)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(WALL_S)


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _execute(words: list[str], place: Path, environment: dict[str, str]) -> tuple[int, str]:
    whole = {k: v for k, v in (os.environ | environment).items() if v != "UNSET"}
    done = subprocess.run(
        [sys.executable, "-m", "testbed", *words],
        cwd=place,
        env=whole,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        preexec_fn=_limit,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def _damage(file: Path, how: dict[str, Any]) -> None:
    """Do to a file what the corpus says."""
    match how:
        case {"remove": True}:
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        case {"hex": content, "emulation": told}:
            file.write_bytes(bytes.fromhex(content))
            (file.parents[1] / "emulation.json").write_text(told)
        case {"text": text}:
            file.write_text(text * how.get("times", 1), encoding="utf-8")
        case {"cut": size}:
            os.truncate(file, size)
        case {"append": text}:
            with file.open("a") as log:
                log.write(text)
        case {"replace": old, "by": new}:
            file.write_text(file.read_text().replace(old, new, how.get("times", -1)))
        case {"drop": line}:
            lines = file.read_text().splitlines(keepends=True)
            del lines[line]
            file.write_text("".join(lines))
        case {"double": line}:
            lines = file.read_text().splitlines(keepends=True)
            lines.insert(line, lines[line])
            file.write_text("".join(lines))
        case {"swap": [one, other]}:
            lines = file.read_text().splitlines(keepends=True)
            lines[one], lines[other] = lines[other], lines[one]
            file.write_text("".join(lines))
        case {"link": target}:
            file.unlink()
            file.symlink_to(target)
        case {"fifo": True}:
            file.unlink()
            os.mkfifo(file)
        case {"set": key, "to": value}:
            content = json.loads(file.read_text())
            content[key] = value
            file.write_text(json.dumps(content))
        case {"unset": key}:
            content = json.loads(file.read_text())
            del content[key]
            file.write_text(json.dumps(content))
        case _:
            raise ValueError(f"unknown damage {how}")
