"""Exit codes, and the one way in which a verb gives up.

0 is fine, 1 is refused or unschedulable as the verb says, 2 is bad usage or unreadable input. A user's
mistake is one line on stderr, never a traceback; a traceback is a defect of ours.
"""

from typing import NoReturn

import typer

__all__ = ["FINE", "INTERRUPTED", "PIPE_CLOSED", "REFUSED", "USAGE", "UserError", "finish"]

FINE = 0
REFUSED = 1
USAGE = 2
INTERRUPTED = 130
"""What shells report of a command that Ctrl-C ended (128 + SIGINT)."""
PIPE_CLOSED = 141
"""What shells report of a command whose reader went away (128 + SIGPIPE)."""


class UserError(typer.TyperException):
    """Bad usage or unreadable input; each message is shown as one line, and the exit code is 2.

    Attributes:
        messages: One, or one for each of several inputs that cannot be read.
    """

    exit_code = USAGE

    def __init__(self, *messages: str) -> None:
        super().__init__(messages[0])
        self.messages = messages


def finish(code: int) -> NoReturn:
    """End the verb with an exit code."""
    raise typer.Exit(code)
