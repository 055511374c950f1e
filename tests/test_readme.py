"""What the documents name is there: files, commands, keys."""

import re
from pathlib import Path

import pytest

from testbed.cli import COMMANDS
from testbed.experiment import parse
from testbed.topologies import MODELS, OVERLAYS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXPERIMENTS = (ROOT / "docs" / "experiments.md").read_text()


def test_every_path_that_is_named_is_there() -> None:
    named = set(re.findall(r"`((?:testbed|protocols|topologies|scripts|docs)/[\w./-]*)", README))
    named |= set(re.findall(r"\]\(((?!http)[\w./-]+)\)", README))
    assert len(named) > 10
    for path in named:
        assert (ROOT / path).exists(), path


def test_every_command_is_explained() -> None:
    explained = set(re.findall(r"`testbed (\w+)", README))
    assert explained == {command.__name__.rpartition(".")[2] for command in COMMANDS}


@pytest.mark.parametrize("name", ["run", "test", "setup", "bench", "reproduce", "kernel"])
def test_scripts_can_be_run(name: str) -> None:
    assert (ROOT / "scripts" / name).stat().st_mode & 0o111


def test_the_experiment_of_the_readme_is_valid() -> None:
    import tomllib

    (block,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert len(parse(tomllib.loads(block), Path("README.md"))) == 2


def test_every_model_is_documented() -> None:
    for name in (*MODELS, *OVERLAYS):
        assert f"`{name}`" in EXPERIMENTS, name
