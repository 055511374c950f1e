"""What a process does in one step, in plain words."""

from collections.abc import Sequence


class Words:
    """Gathers what happens and makes sentences of it."""

    def __init__(self, what: str = "") -> None:
        self._parts = [what] if what else []
        self._delivered: list[str] = []

    def delivers(self, name: str) -> None:
        """A message is delivered; several in a row make one sentence."""
        self._delivered.append(name)

    def holds(self, name: str, waits_for: str | None) -> None:
        """A message is held back."""
        until = f"until {waits_for} is delivered" if waits_for else "for something without a name"
        self.says(f"holds {name} back {until}")

    def sends(self, what: str, peers: Sequence[int]) -> None:
        """Copies of a message go to these processes."""
        self.says(f"sends {what} to {_list(peers)}")

    def says(self, what: str) -> None:
        """Something else."""
        self._close()
        self._parts.append(what)

    def sentences(self) -> list[str]:
        """All of it, in order."""
        self._close()
        return self._parts

    def _close(self) -> None:
        if self._delivered:
            self._parts.append(f"delivers {', '.join(self._delivered)}")
            self._delivered = []


def _list(peers: Sequence[int]) -> str:
    names = [str(peer) for peer in peers]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
