"""The run directory: the contract between the engines and everything that reads their results.

    runs/<experiment>/<run>/
      experiment.toml   the experiment as resolved
      protocol/*.py     the file of the protocol, if it is one of its own
      manifest.json     engine, versions, times, status, what the protocol promises, counters, figures
      network.json      nodes, links, overlay
      events/*.jsonl    what each node did (see testbed.runs.events)
      packets/          what crossed each link: captures, or the simulator's table if asked for
      emulation.json    what hosts and capture counted, if emulated; hosts/ has the logs of the hosts
      tables/*.parquet  what the digest made of all this (see docs/results.md)
      summary.json      the run's figures, one flat object
      figures/          and report.html: what the report shows

Nobody else knows these names. A run is "running" as long as the process lives that writes it, then
"complete", "interrupted" or "failed", as its manifest says, or "dead" if that process was killed.
The manifest has a hash of everything that the verdict rests on: where that has changed, the verdict
is "stale". Nothing is overwritten: a new run gets a new directory, and ``latest`` points to it.
"""

import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from time import process_time
from types import TracebackType
from typing import IO, Any, Self
from zlib import crc32

from testbed import __version__
from testbed.errors import UserError, read_text
from testbed.experiment import Experiment, Network, Scenario, load, read_document
from testbed.plugins.source import KEPT, source_of
from testbed.runs.evidence import changes, hashes
from testbed.runs.parts import whole
from testbed.runs.versions import versions

SCHEMA = 1
PLOTS_DIRECTORY = "figures"  # of a page, next to the page
PAGE = "report.html"
VERSIONS = "versions.json"  # of what made the tables, beside them
SWEPT = "sweep.toml"  # what only a sweep's directory has
LIVING = ".living"  # locked while the run is written
NAME = re.compile(r"\d{8}-\d{6}-")  # how the name of every run begins: when it was started


class RunDirectory(AbstractContextManager["RunDirectory"]):
    """A run on disk, finished or being written; reading what is not there is a ``UserError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._living: IO[str] | None = None  # locked by the process that writes the run
        self._processor = process_time()

    @classmethod
    def create(cls, runs: Path, experiment: str, label: str, **manifest: Any) -> Self:
        """A new directory below ``runs``, named for the time and the label.

        As a context it is a run being written: leaving it settles the status, whatever happened.
        """
        parent = runs / experiment
        started = datetime.now(UTC)
        run = cls(_new_directory(parent, f"{started:%Y%m%d-%H%M%S}-{label}"))
        run.packets.mkdir()
        run.event_log().parent.mkdir()
        run._living = (run.path / LIVING).open("w")
        fcntl.flock(run._living, fcntl.LOCK_EX)
        run.manifest = {
            "schema": SCHEMA,
            "testbed": __version__,
            "status": "running",
            "experiment": experiment,
            "run": run.path.name,
            **manifest,
            "started": started.isoformat(timespec="milliseconds"),
            "versions": versions(manifest.get("engine")),
            "command": ["testbed", *sys.argv[1:]],
        }
        run.write_manifest()
        _point_latest(parent, run.path.name)
        return run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is None:
            self.manifest["status"] = "complete"
        elif issubclass(kind, KeyboardInterrupt):
            self.manifest["status"] = "interrupted"
        else:
            self.manifest["status"] = "failed"
            self.manifest["error"] = f"{kind.__name__}: {error}"
        self.manifest["ended"] = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.manifest["processor_s"] = round(process_time() - self._processor, 3)
        self.write_manifest()
        if self._living is not None:
            (self.path / LIVING).unlink(missing_ok=True)
            self._living.close()

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Engine, versions, times and status; a directory without a manifest is no run."""
        file = self.path / "manifest.json"
        if not self.path.is_dir():
            raise UserError(
                f"{self.path}: no such run directory; `testbed run` prints where its runs are"
            )
        manifest = read_json(file, "this is not a run directory")
        if not isinstance(manifest, dict) or "schema" not in manifest:
            raise UserError(f"{file}: not a manifest of this testbed")
        if manifest["schema"] != SCHEMA:
            raise UserError(
                f"{file}: schema {manifest['schema']!r}, and this testbed ({__version__}) reads "
                f"schema {SCHEMA}; use the version that wrote it "
                f"({manifest.get('testbed', 'unknown')})"
            )
        return manifest

    @property
    def status(self) -> str:
        """What became of the run."""
        status = str(self.manifest.get("status", "unknown"))
        return "dead" if status == "running" and not self._is_alive() else status

    def _is_alive(self) -> bool:
        try:
            with (self.path / LIVING).open() as living:
                fcntl.flock(living, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @property
    def evidence(self) -> list[Path]:
        """The files that a verdict rests on."""
        kept = sorted((self.path / KEPT).glob("*.py"))
        files = (self.path / "experiment.toml", self.network_file, self.packet_table, *kept)
        return [file for file in (*files, *self.event_logs, *self.captures) if file.is_file()]

    def seal(self) -> None:
        """Put into the manifest by what the evidence is known again."""
        self.manifest["evidence"] = hashes(self.evidence, self.path)

    @cached_property
    def changes(self) -> list[str]:
        """A sentence for each piece of evidence that is not as the run left it."""
        try:
            sealed = self.manifest["evidence"]
        except (UserError, KeyError):  # somebody else's logs, not finished, or of an older version
            return []
        return changes(sealed, self.evidence, self.path)

    @property
    def verdict(self) -> str:
        """What was found when the run was checked; stale if it may be different now."""
        return "stale" if self.changes else str(self.manifest.get("verdict", "unknown"))

    def write_manifest(self) -> None:
        """Write the manifest as it is in memory."""
        self.write_json("manifest.json", self.manifest)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The experiment file, parsed as TOML but not validated."""
        return read_document(self.path / "experiment.toml")

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that was run."""
        return load(self.path / "experiment.toml")[0]

    @property
    def network_file(self) -> Path:
        """The network as a file, for readers of their own."""
        return self.path / "network.json"

    @cached_property
    def network(self) -> Network:
        """The network that it was run on."""
        content = read_json(self.network_file, "the run ended before its network was built")
        try:
            return Network.from_json(content)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{self.network_file}: not a network of this testbed: {error!r}"
            ) from None

    @property
    def scenario(self) -> Scenario:
        """The experiment and its network, with all that follows from them."""
        return Scenario.on(self.experiment, self.network)

    def save(self, scenario: Scenario) -> None:
        """Write down what is to be run: ``scenario`` reads it again, in a guest too."""
        if source := source_of(scenario.experiment.protocol):
            (self.path / source.kept).parent.mkdir()
            self.write_text(source.kept, source.text)
            self.manifest["protocol_file"] = {"file": source.kept, "sha256": source.sha256}
            self.write_manifest()
        self.write_text("experiment.toml", scenario.experiment.to_toml())
        self.write_json("network.json", scenario.network.to_json())

    def event_log(self, node: int | None = None) -> Path:
        """The event log of one node, or the one that all nodes share."""
        return self.path / "events" / ("nodes.jsonl" if node is None else f"h{node}.jsonl")

    @property
    def event_logs(self) -> list[Path]:
        """All event logs, sorted by name."""
        return sorted(filter(Path.is_file, self.event_log().parent.glob("*.jsonl")))

    @property
    def packets(self) -> Path:
        """The directory of the captures."""
        return self.path / "packets"

    @property
    def captures(self) -> list[Path]:
        """All captures (pcap), sorted by name."""
        return sorted(filter(Path.is_file, self.packets.glob("*.pcap")))

    @property
    def packet_table(self) -> Path:
        """The simulator's table of what crossed each link."""
        return self.packets / "links.parquet"

    def host_log(self, node: int) -> Path:
        """The text log of an emulated host: its output and its errors."""
        return self.path / "hosts" / f"h{node}.log"

    @property
    def emulation(self) -> dict[str, Any]:
        """The counters of an emulation's hosts, links and capture, its clock and its interfaces."""
        file = self.path / "emulation.json"
        content: dict[str, Any] = read_json(file, "the emulation did not end well")
        return content

    @property
    def interfaces(self) -> dict[int, tuple[int | None, int]]:
        """The ends of the link that each captured interface belongs to; None is a host."""
        try:
            found = self.emulation["interfaces"].items()
            return {int(index): (tail, head) for index, (tail, head) in found}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UserError(
                f"{self.path / 'emulation.json'}: does not say which link each interface is of, so "
                "the captures cannot be used"
            ) from None

    def write_emulation(self, content: dict[str, Any]) -> None:
        """Write the counters of an emulation."""
        self.write_json("emulation.json", content)

    @property
    def summary_file(self) -> Path:
        """The file of the figures."""
        return self.path / "summary.json"

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The run's figures, one flat object."""
        summary = read_json(self.summary_file, f"{self.digest_command} writes it")
        if not isinstance(summary, dict):
            raise UserError(
                f"{self.summary_file}: not an object; {self.digest_command} writes it again"
            )
        return summary

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write the figures, in place of any that were there."""
        self.write_json("summary.json", summary)

    @property
    def digest_command(self) -> str:
        """The command that writes the tables and the summary."""
        return f"`testbed digest {self.path}`"

    @property
    def tables(self) -> Path:
        """The directory of the digest's tables."""
        return self.path / "tables"

    @property
    def digest_versions(self) -> dict[str, str]:
        """The versions of Spark and Java that made the tables, if the digest says so."""
        file = self.tables / VERSIONS
        return dict(read_json(file, "")) if file.exists() else {}

    @contextmanager
    def new_tables(self) -> Iterator[Path]:
        """A directory to write tables to; at the end it replaces the tables that were there."""
        part = self.path / ".tables.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            yield part
            shutil.rmtree(self.tables, ignore_errors=True)
            part.rename(self.tables)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    @property
    def page(self) -> Path:
        """The page of the report."""
        return self.path / PAGE

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file that is there whole or not at all."""
        self.write_text(name, json.dumps(content, indent=1) + "\n")

    def write_text(self, name: str, content: str) -> None:
        """Write a file that is there whole or not at all."""
        with whole(self.path / name) as part:
            part.write_text(content, encoding="utf-8")


def runs_in(directory: Path) -> list[Path]:
    """The runs of a sweep or of an experiment, the oldest first."""
    return sorted(path for path in directory.iterdir() if NAME.match(path.name) and path.is_dir())


def expanded(paths: Iterable[Path]) -> list[Path]:
    """Run directories; a directory of runs, such as a sweep's, stands for all that are in it."""
    return [run for path in paths for run in (_runs_of(path) or [path])]


def _runs_of(path: Path) -> list[Path]:
    is_run = (path / "manifest.json").exists() or not path.is_dir()
    return [] if is_run else runs_in(path)


def read_json(file: Path, otherwise: str) -> Any:
    """The content of a JSON file; ``otherwise`` tells the user what a missing file means."""
    try:
        return json.loads(read_text(file))
    except FileNotFoundError:
        raise UserError(f"{file}: no such file; {otherwise}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None


def run_id(manifest: dict[str, Any]) -> int:
    """The 32-bit number by which packets identify their run."""
    return crc32(f"{manifest['experiment']}/{manifest['run']}".encode())


def safe_name(text: str) -> str:
    """Text that can be part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "run"


def _new_directory(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, 10_000):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise UserError(f"{parent}: no free name for a run called {name}")


def _point_latest(parent: Path, name: str) -> None:
    part = parent / f".latest-{os.getpid()}"
    part.symlink_to(name)
    os.replace(part, parent / "latest")
