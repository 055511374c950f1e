"""What follows from the course's secret and a student's name: hidden seeds, and the numbers of a
variant."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

SEEDS = 1 << 31


def draw(secret: str, student: str, lab: str, what: str, below: int) -> int:
    """A number from 0 on that nobody can know without the secret."""
    text = "\0".join((secret, student, lab, what))
    return int.from_bytes(sha256(text.encode(errors="replace")).digest()[:16]) % below


def hidden_seeds(secret: str, student: str, lab: str, tier: str, count: int) -> list[int]:
    """The seeds of a hidden tier."""
    return [1 + draw(secret, student, lab, f"{tier} {n}", SEEDS) for n in range(count)]


def choose(secret: str, student: str, lab: str, key: str, values: Sequence[Any]) -> Any:
    """One of these values."""
    return values[draw(secret, student, lab, key, len(values))]
