"""The layers: protocols and topologies are pure, heavy libraries stay where they belong."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PURE = {"protocols", "topologies"}
LIBRARIES = {"numpy", "networkx"}
# library: the only places that may import it
HOMES = {
    "mininet": ("testbed/engines/mininet",),
    "ryu": ("testbed/engines/mininet",),
    "os_ken": ("testbed/engines/mininet",),
    "pyspark": ("testbed/digest",),
    "scapy": ("testbed/capture",),
}


def imports(file: Path) -> set[str]:
    """Top-level packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: import by full names"
            found.add(str(node.module).partition(".")[0])
    return found


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", sorted(PURE))
def test_pure_packages_import_only_the_standard_library_numpy_and_networkx(package: str) -> None:
    assert sources(package)
    for file in sources(package):
        foreign = imports(file) - set(sys.stdlib_module_names) - LIBRARIES - {package}
        assert not foreign, f"{file.relative_to(ROOT)} imports {foreign}"


def test_protocols_do_no_io_and_read_no_clock() -> None:
    for file in sources("protocols"):
        impure = imports(file) & {
            "socket",
            "time",
            "os",
            "pathlib",
            "asyncio",
            "threading",
            "select",
        }
        assert not impure, f"{file.relative_to(ROOT)} imports {impure}"


def test_nobody_imports_the_scripts_and_heavy_libraries_stay_at_home() -> None:
    for file in (f for package in ("protocols", "topologies", "testbed") for f in sources(package)):
        path = file.relative_to(ROOT).as_posix()
        found = imports(file)
        assert not found & {"scripts", "tests"}, path
        for library, homes in HOMES.items():
            assert library not in found or path.startswith(homes), f"{path} imports {library}"


def test_the_simulator_starts_without_the_heavy_libraries() -> None:
    heavy = [*HOMES, "matplotlib", "pandas"]
    code = f"import sys, testbed.cli; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
