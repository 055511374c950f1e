"""Compile what ``testbed/compiled.py`` lists, unless that has been done.

    python scripts/compile.py [--check]

It takes half a minute, a C compiler and Python's header files. ``--check`` only says by its exit status
whether there is nothing to do, or nothing to do it with.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
import traceback
from pathlib import Path

PROJECT = Path(__file__).parent.parent
sys.path.insert(0, str(PROJECT))

from testbed.compiled import GROUP, MODULES, directory, source  # noqa: E402


def main() -> int:
    """Compile, or only say whether there is anything to do."""
    place = directory()
    log = place.with_suffix(".failed")
    if place.is_dir() or not can_compile():
        return 0
    if "--check" in sys.argv[1:]:
        return 0 if log.exists() else 1
    place.parent.mkdir(exist_ok=True)
    for old in place.parent.iterdir():  # a process that uses it has it open
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    with tempfile.TemporaryDirectory() as build:
        new = place.with_suffix(".new")
        try:
            compile_to(new, Path(build))
        except (Exception, SystemExit):
            log.write_text(traceback.format_exc())
            print(f"compile: this failed (log: {log})", file=sys.stderr)
            return 1
    new.rename(place)
    return 0


def can_compile() -> bool:
    """Whether there is what a compiler needs."""
    return bool(shutil.which("gcc")) and Path(sysconfig.get_path("include"), "Python.h").exists()


def compile_to(place: Path, build: Path) -> None:
    """Have mypyc make C of all modules at once, so that they call each other directly."""
    from mypyc.build import mypycify
    from setuptools import Distribution  # type: ignore[import-untyped]
    from setuptools.command.build_ext import build_ext  # type: ignore[import-untyped]

    os.chdir(PROJECT)
    options = ["--always-true=COMPILED", "--no-warn-unused-ignores", "--follow-imports=silent"]
    options.append(f"--cache-dir={build / 'types'}")
    files = [str(source(module).relative_to(PROJECT)) for module in MODULES]
    extensions = mypycify(options + files, opt_level="3", group_name=GROUP, target_dir=str(build))
    command = build_ext(Distribution({"name": GROUP, "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(place), str(build)
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    sys.exit(main())
