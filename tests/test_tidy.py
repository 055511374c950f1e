"""Decay that no linter sees: long files and functions, loose modules, names that nobody uses."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT = ("protocols", "topologies", "testbed")
FILE_LINES, FUNCTION_LINES = 400, 50
LOOSE = {
    "__init__",
    "__main__",
    "cli",
    "compiled",
    "errors",
    "figures",
    "host_clock",
    "progress",
    "run",
}
# Names that something else calls, and what that is.
CALLED = {
    "http.server": "server_version do_GET do_POST log_message",
    "Mininet": "sendCmd popen _popen setup dpctl updateIP makeIntfPair "
    "preloop initReadline emptyline",
    "Ryu": "OFP_VERSIONS switch_comes_or_goes port_changes rules_are_in_place switch_refuses",
    "Spark": "partitions",
    "ctypes": "_fields_",
    "pytest, in what `testbed new` writes": "test_two_processes_deliver_everything_in_order "
    "test_three_processes_keep_causal_order",
    "pickle": "persistent_id",
    "rich": "get_renderables",
    "tests, which must find what is broken in them": "Reset BROKEN_RINGS",
    "notebooks": "_repr_html_ spacetime trends",
}
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def files(*directories: str, suffix: str = ".py") -> list[Path]:
    return [f for d in directories for f in sorted((ROOT / d).rglob(f"*{suffix}"))]


def named(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def test_no_file_is_long() -> None:
    sources = files(*PRODUCT, "tests", "scripts")
    sources += [f for suffix in (".js", ".c", ".css") for f in files("testbed", suffix=suffix)]
    sources += [f for f in (ROOT / "scripts").iterdir() if f.is_file()]
    long = {named(f) for f in sources if len(f.read_text().splitlines()) > FILE_LINES}
    assert not long, long


def test_no_function_is_long() -> None:
    long = {
        f"{named(file)}: {node.name}"
        for file in files(*PRODUCT, "tests", "scripts")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
        if node.end_lineno - node.lineno >= FUNCTION_LINES
    }
    assert not long, long


def test_every_module_is_in_a_room() -> None:
    assert {file.stem for file in (ROOT / "testbed").glob("*.py")} == LOOSE


def test_every_name_is_used() -> None:
    """By the product or a script, beside its own definition: what only tests use is dead."""
    trees = {file: ast.parse(file.read_text()) for file in files(*PRODUCT)}
    scripts = (ast.parse(file.read_text()) for file in files("scripts"))
    used = Counter(name for tree in (*trees.values(), *scripts) for name in uses(tree))
    called = {name for names in CALLED.values() for name in names.split()}
    dead = [
        f"{named(file)}:{node.lineno}: {name}"
        for file, tree in trees.items()
        for name, node in definitions(tree)
        if used[name] <= Counter(uses(node))[name] and not name.startswith("__")
        if name not in called
    ]
    assert not dead, "\n".join(dead)


def definitions(scope: ast.Module | ast.ClassDef) -> Iterator[tuple[str, Definition]]:
    """Functions, classes, methods and constants; what a class annotates is data, not a name."""
    for node in scope.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            yield from definitions(node)
        elif isinstance(node, ast.Assign):
            yield from ((t.id, node) for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(scope, ast.Module):
            assert isinstance(node.target, ast.Name)
            yield node.target.id, node


def uses(tree: ast.AST) -> Iterator[str]:
    """Every name that is read, by itself, of an object or in a string; ``__all__`` reads none."""
    if isinstance(tree, ast.Assign) and any(ast.unparse(t) == "__all__" for t in tree.targets):
        return
    if isinstance(tree, ast.Name) and isinstance(tree.ctx, ast.Load):
        yield tree.id
    elif isinstance(tree, ast.Attribute):
        yield tree.attr
    elif isinstance(tree, ast.keyword) and tree.arg is not None:
        yield tree.arg
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield from [tree.value] if tree.value.isidentifier() else []
    for child in ast.iter_child_nodes(tree):
        yield from uses(child)
