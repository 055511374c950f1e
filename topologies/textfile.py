"""Text files as lines of words, so that each error can name file and line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import TopologyError


@dataclass(frozen=True)
class TextLine:
    """The words of one line of a file."""

    file: str
    number: int
    words: tuple[str, ...]

    def error(self, message: str) -> TopologyError:
        """An error that names file and line."""
        return TopologyError(f"{self.file}, line {self.number}: {message}")

    def word(self, position: int, what: str) -> str:
        """A word, which must be there."""
        if position >= len(self.words):
            raise self.error(f"{what} is missing: it must be word {position + 1} of the line")
        return self.words[position]

    def integer(self, position: int, what: str) -> int:
        """A word as a whole number."""
        word = self.word(position, what)
        try:
            return int(word)
        except ValueError:
            raise self.error(f"{what} must be a whole number, not {word!r}") from None

    def real(self, position: int, what: str) -> float:
        """A word as a number."""
        word = self.word(position, what)
        try:
            return float(word)
        except ValueError:
            raise self.error(f"{what} must be a number, not {word!r}") from None


def lines_of(text: str, file: str, comment: str = "") -> Iterator[TextLine]:
    """The lines that are neither blank nor comment, and an empty one for the end."""
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        words = tuple((line.split(comment)[0] if comment else line).split())
        if words:
            yield TextLine(file, number, words)
    yield TextLine(file, number + 1, ())


def read_text(path: str | Path) -> str:
    """A file's text; a device or a pipe might have no end."""
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise TopologyError(f"{path} cannot be read: it is not a regular file")
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {error.strerror}") from None
