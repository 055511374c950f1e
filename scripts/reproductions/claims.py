"""What a paper claims, and the rule by which it is judged: written down before anything is run.

A judge is a pure function of what was measured that knows what it compares and by which rule. Its
verdict is yes, no or unclear; or that nothing can be judged, with the reason, where there is nothing to
compare. No claim is ever left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

Found = TypeVar("Found")  # everything that a reproduction has measured
Parameters = ParamSpec("Parameters")
Answer = bool | None  # None: the measurements decide nothing
YES, NO, UNCLEAR, UNJUDGED = VERDICTS = ("yes", "no", "unclear", "cannot be judged")
WORDS = {True: YES, False: NO, None: UNCLEAR}


class CannotJudgeError(Exception):
    """There is nothing to compare; the text says why."""


class Finding(NamedTuple):
    """What was measured, in words, and whether the claim holds."""

    measured: str
    holds: Answer

    @classmethod
    def of_each(cls, measured: str, answers: Mapping[str, Answer]) -> "Finding":
        """The finding of a claim about several settings: it holds if it does in all of them."""
        holds = all_of([*answers.values()])
        kinds = [
            f"{word} at {', '.join(setting for setting, its in answers.items() if its is answer)}"
            for answer, word in WORDS.items()
            if answer in answers.values()
        ]
        return cls(f"{measured} ({'; '.join(kinds)})" if len(kinds) > 1 else measured, holds)


@dataclass(frozen=True)
class Judge(Generic[Found]):
    """What is compared, by which rule, and the function that does it."""

    compared: str
    rule: str
    decide: Callable[[Found], Finding]

    def __call__(self, found: Found) -> Finding:
        """What was measured, and whether that is as claimed."""
        return self.decide(found)


@dataclass(frozen=True)
class Claim(Generic[Found]):
    """What a paper says and where: its section, figure or page."""

    where: str
    says: str
    judge: Judge[Found]


class Judged(NamedTuple):
    """A claim with its verdict, in words, as tables and files have it."""

    where: str
    says: str
    compared: str
    rule: str
    measured: str  # or why it cannot be judged
    verdict: str


def judges(
    compared: str, rule: str
) -> Callable[
    [Callable[Concatenate[Found, Parameters], Finding]], Callable[Parameters, Judge[Found]]
]:
    """Make a function of what was found into a maker of judges, which takes its other parameters.

    ``compared`` and ``rule`` may name these parameters in braces.
    """

    def decorate(
        decide: Callable[Concatenate[Found, Parameters], Finding],
    ) -> Callable[Parameters, Judge[Found]]:
        @wraps(decide)
        def of(*args: Parameters.args, **options: Parameters.kwargs) -> Judge[Found]:
            given = signature(decide).bind(None, *args, **options)
            given.apply_defaults()
            words = {name: _words(value) for name, value in given.arguments.items()}
            return Judge(
                compared.format(**words),
                rule.format(**words),
                lambda found: decide(found, *args, **options),
            )

        return of

    return decorate


def _words(value: Any) -> Any:
    """Several things as a list, and names of figures as words."""
    if type(value) is tuple:
        return ", ".join(map(str, value))
    return value.replace("_", " ") if isinstance(value, str) else value


def judged(claims: Iterable[Claim[Found]], found: Found) -> tuple[Judged, ...]:
    """Every claim with its verdict."""
    return tuple(
        Judged(claim.where, claim.says, claim.judge.compared, claim.judge.rule, *_verdict(claim, found))
        for claim in claims
    )  # fmt: skip


def _verdict(claim: Claim[Found], found: Found) -> tuple[str, str]:
    try:
        measured, holds = claim.judge(found)
    except CannotJudgeError as reason:
        return str(reason), UNJUDGED
    except LookupError as missing:
        return f"not run at this scale: {missing.args[0]}", UNJUDGED
    return measured, WORDS[holds]


def tally(verdicts: Iterable[Judged]) -> dict[str, int]:
    """How many claims have which verdict."""
    counts = Counter(each.verdict for each in verdicts)
    return {word: counts[word] for word in VERDICTS}


def all_of(answers: Sequence[Answer]) -> Answer:
    """No, if one is no; unclear, if one is unclear; else yes; there must be an answer."""
    if not answers:
        raise CannotJudgeError("nothing was measured that could be compared")
    return False if False in answers else None if None in answers else True


def any_of(answers: Sequence[Answer]) -> Answer:
    """Yes, if one is yes; unclear, if one is unclear; else no; there must be an answer."""
    if not answers:
        raise CannotJudgeError("nothing was measured that could be compared")
    return True if True in answers else None if None in answers else False
