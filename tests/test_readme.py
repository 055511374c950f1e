"""The documents are true: the files, commands, keys and names that they mention are there."""

import re
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from testbed import figures
from testbed.cli import COMMANDS
from testbed.experiment import parse
from testbed.faults import FAULTS
from testbed.topologies import GROUPINGS, MODELS, OVERLAYS
from testbed.workloads import WORKLOADS
from tests.test_architecture import ROOMS

ROOT = Path(__file__).parent.parent
DOCUMENTS = {
    file.relative_to(ROOT).as_posix(): file.read_text()
    for file in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))
}
README = DOCUMENTS["README.md"]
ARCHITECTURE = DOCUMENTS["docs/architecture.md"]
NAMES = set(COMMANDS)
EXAMPLES = {"tests/protocols/test_NAME.py"}  # that the reader is to write


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_that_is_named_is_there(document: str) -> None:
    text = DOCUMENTS[document]
    start = r"(?<![\w./-])(?:testbed|protocols|topologies|scripts|docs|tests)/"
    for path in set(re.findall(start + r"[\w./-]*\w", text)) - EXAMPLES:
        assert (ROOT / path).exists(), path
    for path in set(re.findall(r"\]\((?!http)([\w./-]+)", text)):
        assert (ROOT / document).parent.joinpath(path).exists(), path


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_that_is_named_is_there(document: str) -> None:
    text = DOCUMENTS[document]
    assert set(re.findall(r"(?:`|^)testbed (\w+)", text, re.M)) <= NAMES
    for script, name in re.findall(r"scripts/(bench|reproduce) (\w+)", text):
        folder = {"bench": "benchmarks", "reproduce": "reproductions"}[script]
        assert find_spec(f"scripts.{folder}.{'book' if name == 'all' else name}"), name


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_examples_import_is_there(document: str) -> None:
    for module, name in re.findall(
        r"^from (testbed[\w.]*) import (\w+)$", DOCUMENTS[document], re.M
    ):
        assert hasattr(import_module(module), name), f"{module}.{name}"


def test_every_command_is_explained() -> None:
    assert set(re.findall(r"`testbed (\w+)", README)) == NAMES


@pytest.mark.parametrize(
    "name", ["run", "test", "setup", "bench", "reproduce", "kernel", "fail-over", "fuzz-long"]
)
def test_scripts_can_be_run(name: str) -> None:
    assert (ROOT / "scripts" / name).stat().st_mode & 0o111


def test_the_experiment_of_the_readme_is_valid() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert len(parse(tomllib.loads(block), Path("README.md"))) == 2


def test_the_output_in_the_readme_has_the_labels_of_today() -> None:
    output = README.split("overlay  timestamp\n")[1].split("network:")[0]
    labels = re.findall(r"^(\S.*?) {2,}", output, re.M)
    assert labels == [f.title for f in figures.table().values() if f.title in labels]
    assert len(labels) == len(output.splitlines())


@pytest.mark.parametrize("registry", [MODELS, OVERLAYS, GROUPINGS, WORKLOADS, FAULTS])
def test_every_model_is_documented(registry: dict[str, type]) -> None:
    for name in registry:
        assert f"`{name}`" in DOCUMENTS["docs/experiments.md"], name


def test_the_page_on_the_architecture_has_the_packages_in_their_order() -> None:
    table = ARCHITECTURE.split("| package |")[1].split("\n\n")[0]
    rows = [tuple(re.findall(r"`(\w+)`", row)) for row in re.findall(r"^\| (`.*?) \|", table, re.M)]
    assert rows == list(ROOMS)


def test_the_functions_that_a_message_passes_through_are_where_the_page_says() -> None:
    named = re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", ARCHITECTURE)
    assert len(named) > 15
    for file, names in named:
        for name in re.findall(r"(\w+)`", names):
            text = (ROOT / file).read_text()
            assert re.search(rf"(def|class) {name}\b", text), f"{file}: {name}"
