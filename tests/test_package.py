"""The wheel: all that the tree has, and a simulator where nothing but its dependencies is installed."""

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from shutil import copytree, ignore_patterns, unpack_archive

import pytest
import tomli_w
from packaging.requirements import Requirement

from testbed import __version__
from tests.experiments import SMALL

ROOT = Path(__file__).parent.parent
PACKAGES = ("testbed", "protocols", "topologies")
START = """
import runpy, sys
sys.path[:0] = sys.argv.pop(1), sys.argv.pop(1)
runpy.run_module("testbed", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from an sdist of the tree; by the setuptools that is here, without network."""
    tree, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("built")
    for name in PACKAGES:
        copytree(ROOT / name, tree / name, symlinks=True, ignore=ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (tree / name).write_bytes((ROOT / name).read_bytes())
    sdist = f"from setuptools import build_meta; build_meta.build_sdist({str(built)!r})"
    subprocess.run([sys.executable, "-c", sdist], cwd=tree, check=True, capture_output=True)
    (archive,) = built.glob(f"causal?testbed-{__version__}.tar.gz")
    unpack_archive(archive, built)
    source = built / archive.name.removesuffix(".tar.gz")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "wheel", *offline, "-w", str(built), str(source)]
    subprocess.run(command, cwd=built, check=True, capture_output=True)
    return built / f"causal_testbed-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command for the wheel's ``testbed``, which sees it, its dependencies and nothing else."""
    directory, libraries = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("libraries")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    (metadata,) = directory.glob("*.dist-info/METADATA")
    found = (line.partition("Requires-Dist: ")[2] for line in metadata.read_text().splitlines())
    link_libraries([requirement for requirement in found if requirement], libraries)
    return [sys.executable, "-I", "-S", "-c", START, str(directory), str(libraries)]


def link_libraries(requirements: list[str], directory: Path) -> None:
    """Links to what is installed of these requirements, and of theirs."""
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = distribution(requirement.name)
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            link = directory / name
            if not link.exists():
                link.symlink_to(Path(str(found.locate_file(name))))
                link_libraries(found.requires or [], directory)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A directory with an experiment of the user's own, which looks like a run as well."""
    (tmp_path / "mine.toml").write_text(tomli_w.dumps(SMALL | {"name": "mine"}))
    (tmp_path / "manifest.json").write_text('{"schema": 1, "status": "complete"}')
    return tmp_path


def run(installed: list[str], directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*installed, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "250"},
    )


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    inside = {"testbed": "", "protocols": "testbed/", "topologies": "testbed/"}
    expected = {
        inside[package] + file.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert {"testbed/py.typed", "testbed/protocols/__init__.py"} <= expected
    assert names == expected


def test_vagrant_copies_every_file_of_the_packages() -> None:
    (found,) = re.findall(r"rsync__exclude: (\[.*?\])", (ROOT / "Vagrantfile").read_text())
    for pattern in json.loads(found):
        where = ROOT.glob(pattern[1:]) if pattern.startswith("/") else ROOT.rglob(pattern)
        kept = {path.relative_to(ROOT).parts[0] for path in where}
        assert kept <= {"runs", ".venv", ".vagrant"}, f"{pattern} is also in {kept}"


def test_an_installed_simulator_runs_a_file_of_the_users_own(
    installed: list[str], mine: Path
) -> None:
    arguments = ("run", "mine.toml", "--engine", "simulate")
    done = run(installed, mine, *arguments, "--no-digest")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("results: runs/mine/") == 2
    done = run(installed, mine, *arguments)
    assert done.returncode == 2
    assert done.stdout.count("results: runs/mine/") == 2
    assert done.stderr.startswith("testbed: the runs are complete but not digested: ")
    assert done.stderr.endswith("pip install 'causal-testbed[digest]'\n")
    assert "timestamp" in run(installed, mine, "protocols").stdout
    assert "causal-testbed[all]" in run(installed, mine, "doctor").stdout


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("digest .", "pip install 'causal-testbed[digest]'"),
        ("check . --master local", "pip install 'causal-testbed[digest]'"),
        ("fuzz --seeds 1 --master local", "pip install 'causal-testbed[digest]'"),
        ("report .", "pip install 'causal-testbed[report]'"),
        ("sweep mine.toml", "pip install 'causal-testbed[report]'"),
        ("topology mine.toml -o net.png", "pip install 'causal-testbed[report]'"),
        ("shell mine.toml --engine virtual", "sudo apt-get install mininet"),
        ("run mine.toml --engine mininet", "sudo apt-get install mininet"),
        ("run mine.toml --engine virtual", "sudo apt-get install mininet"),
    ],
)
def test_what_needs_more_is_refused_with_the_command_that_installs_it(
    installed: list[str], mine: Path, arguments: str, remedy: str
) -> None:
    done = run(installed, mine, *arguments.split())
    assert done.returncode == 2
    assert done.stderr.startswith("testbed: ")
    assert remedy in done.stderr
    assert done.stderr.count("\n") == 1
