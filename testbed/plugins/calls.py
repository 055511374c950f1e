"""Which call of a protocol is going on, if one is: what limits its time needs to know that."""


class Calls:
    """Counts the calls; one that is made during another is part of it."""

    def __init__(self) -> None:
        self.number = 0  # of the last one that began
        self.depth = 0

    def begin(self) -> None:
        """A call begins."""
        if self.depth == 0:
            self.number += 1
        self.depth += 1

    def end(self) -> None:
        """It is over, be it by an exception."""
        self.depth -= 1

    def current(self) -> int:
        """The number of the call that is going on; 0 if none is."""
        return self.number if self.depth else 0


calls = Calls()
