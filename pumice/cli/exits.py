"""Exit codes and errors of verbs.

0 is success, 1 is refused or unschedulable (each verb documents it), 2 is bad usage or unreadable input. A user's
mistake is one line on stderr without a traceback; a traceback is a bug in Pumice.
"""

from typing import NoReturn

import typer

FINE = 0
REFUSED = 1
USAGE = 2
INTERRUPTED = 130
"""Exit code that shells report for a command ended by Ctrl-C (128 + SIGINT)."""
PIPE_CLOSED = 141
"""Exit code that shells report for a command whose reader closed the pipe (128 + SIGPIPE)."""


class UserError(typer.TyperException):
    """Bad usage or unreadable input; each message is shown as one line, and the exit code is 2.

    Attributes:
        messages: One message, or one for each input that cannot be read.
    """

    exit_code = USAGE

    def __init__(self, *messages: str) -> None:
        super().__init__(messages[0])
        self.messages = messages


def finish(code: int) -> NoReturn:
    """End the verb with an exit code."""
    raise typer.Exit(code)
