"""A lab: what is handed in, and the tiers by which it is graded; read from ``lab.toml``.

    title = "Vector clocks"
    minutes = 90
    submission = "protocol.py"      # or answers.toml
    also = "answers.toml"           # optional: handed in beside it

    [protocol]                      # what it must say of itself, where that differs from Protocol
    takes_subsets = true

    [[tier]]
    name = "small worlds"
    kind = "explore"                # loads, explore, fuzz, run or answers
    points = 25
    nodes = 3
    messages = 3

Partial credit: a fuzz tier gives half of its points in proportion to the seeds that are right, and
the other half if all are; answers and experiments of a tier count alike. Points are rounded down to
whole ones."""

import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import TypeAdapter, ValidationError

from testbed.errors import UserError, read_text
from testbed.protocols import Protocol

FILE = "lab.toml"
TEACHER = "teacher"  # what students do not see
KINDS = ("loads", "explore", "fuzz", "run", "answers")
PROMISES = (
    *("needs_overlay", "takes_subsets", "needs_groups", "needs_everybody", "rests", "optimistic"),
    "needs_fifo",
)
STATES = 200_000  # that an explored system may have: what 768 MB hold


@dataclass(frozen=True)
class Tier:
    """One part of the grade; which keys it has depends on its kind."""

    name: str
    kind: Literal["loads", "explore", "fuzz", "run", "answers"]
    points: int
    # explore
    nodes: int = 3
    messages: int = 3
    fifo: bool = True
    answers: bool = True
    subsets: bool = True
    limit: int = STATES
    # fuzz
    seeds: int = 20
    large: bool = False
    hidden: bool = False
    # run
    experiment: str = ""
    experiments: tuple[str, ...] = ()
    engine: Literal["simulate", "virtual"] = "simulate"
    limits: dict[str, float] = field(default_factory=dict)
    # answers
    questions: dict[str, float | str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The experiments to run."""
        return (self.experiment,) * bool(self.experiment) + self.experiments

    @property
    def secret(self) -> bool:
        """Whether students are told only how much of it was right."""
        return self.hidden or any(TEACHER in Path(file).parts for file in self.files)


@dataclass(frozen=True)
class Variant:
    """Which experiment files are personal, and the values of which one is drawn for each key."""

    files: tuple[str, ...]
    choices: dict[str, list[Any]]


@dataclass(frozen=True)
class Wrong:
    """What a wrong solution must score: which tiers it does not get in full, and maybe its total."""

    lost: tuple[str, ...]
    score: int | None = None


@dataclass(frozen=True)
class _Document:
    title: str
    submission: str
    tier: tuple[Tier, ...]
    minutes: int = 90
    also: str = ""
    protocol: dict[str, bool] = field(default_factory=dict)
    variant: Variant | None = None
    wrong: dict[str, Wrong] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Lab:
    """A lab, and the directory that it is in."""

    directory: Path
    title: str
    submission: str
    also: str
    tiers: tuple[Tier, ...]
    promises: dict[str, bool]
    variant: Variant | None
    wrong: dict[str, Wrong]

    @classmethod
    def read(cls, path: Path) -> Self:
        """The lab of a directory, or of its ``lab.toml``."""
        directory = path.parent if path.name == FILE else path
        file = directory / FILE
        try:
            content = tomllib.loads(read_text(file))
            read = TypeAdapter(_Document).validate_json(
                json.dumps(content, default=str), strict=True, extra="forbid"
            )
        except FileNotFoundError:
            raise UserError(f"{file}: no such file; a lab is a directory that has one") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"{file}: cannot be read as TOML: {error}") from None
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            raise UserError(f"{file}: {where}: {problem['msg'].lower()}") from None
        _check(read, file)
        return cls(
            directory.resolve(),
            read.title,
            read.submission,
            read.also,
            read.tier,
            _promises(read.protocol, file),
            read.variant,
            read.wrong,
        )

    @property
    def name(self) -> str:
        """What the directory is called."""
        return self.directory.name

    @property
    def points(self) -> int:
        """The most that can be had."""
        return sum(tier.points for tier in self.tiers)

    @property
    def sha256(self) -> str:
        """A hash of all its files, by which a grade that was given before is known again."""
        digest = hashlib.sha256()
        for file in sorted(self.directory.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                name = file.relative_to(self.directory).as_posix()
                digest.update(f"{name}\0{file.stat().st_size}\0".encode() + file.read_bytes())
        return digest.hexdigest()


def _promises(given: dict[str, bool], file: Path) -> dict[str, bool]:
    """All promises; one that is not given is as in ``Protocol``."""
    if unknown := given.keys() - set(PROMISES):
        raise UserError(
            f"{file}: protocol.{min(unknown)}: unknown; known are {', '.join(PROMISES)}"
        )
    defaults = {name: bool(getattr(Protocol, name)) for name in PROMISES[:-1]}
    promises = defaults | given
    return {"needs_fifo": promises["needs_overlay"]} | promises


def _check(read: _Document, file: Path) -> None:
    names = [tier.name for tier in read.tier]
    if not names:
        raise UserError(f"{file}: it needs at least one [[tier]]")
    for tier in read.tier:
        if names.count(tier.name) > 1:
            raise UserError(f"{file}: two tiers are called {tier.name!r}")
        if tier.points < 0:
            raise UserError(f"{file}: tier {tier.name!r}: points must be at least 0")
        if tier.kind == "run" and not tier.files:
            raise UserError(f"{file}: tier {tier.name!r}: a run needs an experiment")
        if tier.kind == "answers" and not tier.questions:
            raise UserError(f"{file}: tier {tier.name!r}: it needs questions")
        if tier.kind != "answers" and not read.submission.endswith(".py"):
            raise UserError(
                f"{file}: tier {tier.name!r}: {tier.kind} needs a protocol, not {read.submission}"
            )
        for experiment in tier.files:
            if not (file.parent / experiment).is_file():
                raise UserError(f"{file}: tier {tier.name!r}: there is no {experiment}")
    for name, wrong in read.wrong.items():
        if unknown := set(wrong.lost) - set(names):
            raise UserError(f"{file}: wrong.{name!r}: there is no tier {min(unknown)!r}")
