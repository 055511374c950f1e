"""The run directory: the contract between the engines and everything that reads their results.

    runs/<experiment>/<run>/
      experiment.toml   the experiment as resolved
      manifest.json     engine, versions, times, status, counters, the engine's own figures
      network.json      nodes, links, overlay
      events/*.jsonl    what each node did (see testbed.runs.events)
      packets/          what crossed each link: captures, or the simulator's table if asked for
      emulation.json    what hosts and capture counted, if emulated; logs of the parts beside it
      tables/*.parquet  what the digest made of all this (see docs/results.md)
      summary.json      the run's figures, one flat object
      figures/          and report.html: what the report shows

A run is what its manifest says: "running" until it ends, then "complete", "interrupted" or "failed".
Nothing is overwritten: a new run gets a new directory, and ``latest`` points to it.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any
from zlib import crc32

from testbed import __version__
from testbed.errors import UserError

SCHEMA = 1


class RunDirectory:
    """A run being written. Leaving the context settles its status, whatever happened."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def create(cls, runs: Path, experiment: str, label: str, **manifest: Any) -> RunDirectory:
        """A new directory below ``runs``, named for the time and the label."""
        parent = runs / experiment
        started = datetime.now(UTC)
        name = f"{started:%Y%m%d-%H%M%S}-{label}"
        path = _new_directory(parent, name)
        for part in ("events", "packets"):
            (path / part).mkdir()
        run = cls(
            path,
            {
                "schema": SCHEMA,
                "testbed": __version__,
                "status": "running",
                "experiment": experiment,
                "run": path.name,
                **manifest,
                "started": started.isoformat(timespec="milliseconds"),
                "versions": _versions(),
                "command": ["testbed", *sys.argv[1:]],
            },
        )
        run.write_manifest()
        _point_latest(parent, path.name)
        return run

    def __enter__(self) -> RunDirectory:
        return self

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
        self.write_manifest()

    def write_manifest(self) -> None:
        """Replace the manifest as a whole."""
        self.write_json("manifest.json", self.manifest)

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file that is there whole or not at all."""
        self.write_text(name, json.dumps(content, indent=1) + "\n")

    def write_text(self, name: str, content: str) -> None:
        """Write a file that is there whole or not at all."""
        part = self.path / f".{name}.part"
        try:
            part.write_text(content, encoding="utf-8")
            os.replace(part, self.path / name)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a finished or unfinished run, or a sentence on why there is none."""
    file = path / "manifest.json"
    if not path.is_dir():
        raise UserError(f"{path}: no such run directory; `testbed run` prints where its runs are")
    manifest = read_json(file, "this is not a run directory")
    if not isinstance(manifest, dict) or "schema" not in manifest:
        raise UserError(f"{file}: not a manifest of this testbed")
    if manifest["schema"] != SCHEMA:
        raise UserError(
            f"{file}: schema {manifest['schema']}, and this testbed ({__version__}) reads schema "
            f"{SCHEMA}; use the version that wrote it ({manifest.get('testbed', 'unknown')})"
        )
    return manifest


def read_json(file: Path, otherwise: str) -> Any:
    """A JSON file's content; a file that is not there or not JSON is the user's matter."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{file}: no such file; {otherwise}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None


def run_id(manifest: dict[str, Any]) -> int:
    """The 32-bit number by which packets name their run."""
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


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "networkx", "pyarrow")}
    return {"python": platform.python_version(), "platform": platform.platform(), **packages}
