"""The autograder that Gradescope is given for a lab: a zip file with the testbed, the lab and two
scripts.

On their side a container has half a core, 768 MB and ten minutes. Nothing of Spark, Mininet or a
guest is installed there; a tier on emulated hosts is then judged by the simulator alone."""

from __future__ import annotations

import zipfile
from importlib.metadata import requires
from pathlib import Path

import testbed
from testbed.errors import UserError
from testbed.grade.lab import Lab

MOMENT = (1980, 1, 1, 0, 0, 0)  # of all files: two bundles of one lab are equal
EXECUTABLE, PLAIN = 0o755 << 16, 0o644 << 16
LEFT_OUT = {"__pycache__", "node_modules"}
SETUP = """#!/usr/bin/env bash
# Executed once, when Gradescope builds the image.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Python 3.11 is needed: choose a newer base image, such as Ubuntu 24.04" >&2
    exit 1
}
python3 -m venv /autograder/venv
/autograder/venv/bin/pip install --no-cache-dir -r /autograder/source/requirements.txt
"""
RUN = """#!/usr/bin/env bash
# Executed for each submission.
set -euo pipefail
cd /autograder
export PYTHONPATH=/autograder/source PYTHONDONTWRITEBYTECODE=1
exec venv/bin/python -P -m testbed grade source/{lab} submission --gradescope results/results.json \\
    --metadata submission_metadata.json --secret source/secret --jobs 1 --output /tmp/grades
"""


def write_bundle(lab: Lab, secret: str, file: Path) -> None:
    """Write the zip file; the course's secret is in it, so it is for Gradescope alone."""
    if not secret:
        raise UserError("--bundle needs --secret FILE: hidden seeds would follow from names alone")
    top = Path(testbed.__file__).parent
    content: dict[str, bytes] = {
        "requirements.txt": _requirements().encode(),
        "secret": f"{secret}\n".encode(),
    }
    for directory, prefix in ((top, "testbed"), (lab.directory, lab.name)):
        for path in sorted(_files(directory)):
            content[f"{prefix}/{path.relative_to(directory).as_posix()}"] = path.read_bytes()
    scripts = {"setup.sh": SETUP, "run_autograder": RUN.format(lab=lab.name)}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in scripts.items():
            _add(archive, name, text.encode(), EXECUTABLE)
        for name, data in content.items():
            _add(archive, name, data, PLAIN)


def _files(directory: Path) -> list[Path]:
    """All files below a directory; links to directories are followed, as protocols are one."""
    found = []
    for path in directory.iterdir():
        if path.name in LEFT_OUT:
            continue
        found += _files(path) if path.is_dir() else [path]
    return found


def _requirements() -> str:
    """What the simulator needs: the package's own requirements, without its extras."""
    needed = [line for line in requires("causal-testbed") or [] if "extra ==" not in line]
    return "".join(f"{line}\n" for line in sorted(needed))


def _add(archive: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, MOMENT)
    entry.external_attr, entry.compress_type = mode, zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
