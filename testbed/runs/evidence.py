"""What a verdict rests on: the files that a run wrote, known again by their hashes."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path


def hashes(files: Iterable[Path], within: Path) -> dict[str, str]:
    """The hash of each file, by its path within a directory."""
    return {str(file.relative_to(within)): _hash(file) for file in files}


def changes(sealed: Mapping[str, str], files: Iterable[Path], within: Path) -> list[str]:
    """A sentence for each file that is not as it was when its hash was taken."""
    now = hashes(files, within)
    different = [f"{name}: changed" for name in sealed if name in now and now[name] != sealed[name]]
    gone = [f"{name}: gone" for name in sealed if name not in now]
    added = [f"{name}: added" for name in now if name not in sealed]
    return [f"{what} since the run" for what in (*different, *gone, *added)]


def _hash(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
