"""Which proposals of a view a process has answered, and whether its answers are still true."""

from .view import ViewId


class Answers:
    """The answers of one process in one group.

    An answer says what the process has. Once it has entered another view, or has given its view up,
    that is not true any more, and the coordinator may yet go by it. So the answer is *spent*: the
    process does not enter a view that follows from it, and asks for a greater proposal.
    """

    def __init__(self, spent: frozenset[ViewId] = frozenset()) -> None:
        self.given: set[ViewId] = set()
        self.spent = spent

    def give(self, proposal: ViewId) -> None:
        """Answer a proposal."""
        self.given.add(proposal)

    def may_enter(self, view: ViewId) -> bool:
        """Whether the answer to a proposal still is true, if there was one."""
        return view in self.given

    def is_spent(self, proposal: ViewId) -> bool:
        """Whether the answer to a proposal is not true any more."""
        return proposal in self.spent

    def spend(self, view: ViewId) -> None:
        """From now on no answer is true; lesser proposals than the present view do not matter."""
        self.spent = frozenset(id for id in (*self.spent, *self.given) if id > view)
        self.given.clear()
