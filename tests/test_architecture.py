"""The plan of the house: pure packages, the order of the rooms, heavy libraries where they belong."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cli import COMMANDS

ROOT = Path(__file__).parent.parent
PURE = {"protocols", "topologies"}
LIBRARIES = {"numpy", "networkx", "typing_extensions"}
# library: the only places that may import it
HOMES = {
    "mininet": ("testbed/engines/mininet",),
    "ryu": ("testbed/engines/mininet",),
    "os_ken": ("testbed/engines/mininet",),
    "pyspark": ("testbed/spark", "testbed/digest", "testbed/sweep"),
    "scapy": ("testbed/packets/capture.py",),
    "matplotlib": ("testbed/report",),
}
# The rooms of testbed/ from the ground up: a room imports only its own and those before it. Rooms in
# one line may not import each other.
ROOMS = (
    ("compiled", "errors", "host_clock", "progress", "protocols", "topologies"),
    ("plugins",),
    ("figures", "packets", "workloads", "faults"),
    ("experiment",),
    ("node",),
    ("runs",),
    ("check",),
    ("engines",),
    ("run",),
    ("spark",),
    ("explore", "fuzz", "digest", "sweep", "export", "live"),
    ("report",),
    ("grade",),
    ("commands",),
    ("cli",),
    ("__main__",),
)


def modules(file: Path) -> set[str]:
    """The modules that a file imports, anywhere in it, by their full names."""
    found = set()
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join([*start, *([node.module] if node.module else [])])
            found |= {f"{name}.{alias.name}" for alias in node.names}
    return found


def imports(file: Path) -> set[str]:
    """Top-level packages that a file imports."""
    return {name.partition(".")[0] for name in modules(file)}


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", sorted(PURE))
def test_pure_packages_import_only_the_standard_library_numpy_and_networkx(package: str) -> None:
    assert sources(package)
    for file in sources(package):
        foreign = imports(file) - set(sys.stdlib_module_names) - LIBRARIES - {package}
        assert not foreign, f"{file.relative_to(ROOT)} imports {foreign}"


def test_protocols_do_no_io_and_read_no_clock() -> None:
    io = {"socket", "time", "os", "pathlib", "asyncio", "threading", "select"}
    for file in sources("protocols"):
        impure = imports(file) & io
        assert not impure, f"{file.relative_to(ROOT)} imports {impure}"


def test_a_room_imports_only_rooms_below_it() -> None:
    level = {room: number for number, rooms in enumerate(ROOMS) for room in rooms}
    assert {room_of(file) for file in sources("testbed")} - {"__init__"} <= level.keys()
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sources("testbed")
        for name in modules(file)
        if name.startswith("testbed.") and (other := name.split(".")[1]) in level
        if (mine := room_of(file)) not in ("__init__", other)
        if level[other] >= level[mine]
    ]
    assert not wrong, "\n".join(wrong)


def room_of(file: Path) -> str:
    return file.relative_to(ROOT / "testbed").with_suffix("").parts[0]


def test_the_product_imports_neither_scripts_nor_tests_and_knows_itself_by_one_name() -> None:
    for file in (f for package in ("protocols", "topologies", "testbed") for f in sources(package)):
        path = file.relative_to(ROOT).as_posix()
        assert not imports(file) & {"scripts", "tests"}, path
        if path.startswith("testbed"):
            assert not imports(file) & PURE, f"{path}: say testbed.protocols, testbed.topologies"


def test_heavy_libraries_stay_at_home() -> None:
    for file in sources("testbed"):
        path = file.relative_to(ROOT).as_posix()
        for library, homes in HOMES.items():
            assert library not in imports(file) or path.startswith(homes), path


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("testbed.cli", ["numpy", "networkx", "pydantic"]),
        (f"testbed.commands.{', testbed.commands.'.join(COMMANDS)}", [*HOMES, "pandas"]),
        ("testbed.runs.results", ["pandas"]),
        ("testbed.report.network_plot", ["matplotlib"]),
    ],
)
def test_a_module_is_imported_without_the_heavy_libraries(module: str, heavy: list[str]) -> None:
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
