"""What goes wrong by the user's doing or the machine's, as against a bug."""


class UserError(Exception):
    """One sentence that says what is wrong, where, and what would be right; exit status 2."""
