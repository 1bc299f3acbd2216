"""The command as a whole: its verbs, and what happens when one fails."""

import errno
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Annotated

import typer

from pumice import __version__
from pumice.cli import (
    certs,
    controller,
    dev,
    exits,
    explain,
    lint,
    plugins,
    render,
    review,
    rules,
    scheduler,
    simulate,
    webhook,
)
from pumice.cli.output import note, paint, write
from pumice.cli.spreading import spread

__all__ = ["app", "run"]

app = typer.Typer(
    name="pumice",
    help="A Volcano-compatible batch stack for Kubernetes: admission, wiring, gang scheduling.",
    epilog="`pumice VERB --help` shows a verb's options and examples.",
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_ANY_FLAGS = {"ignore_unknown_options": True, "allow_extra_args": True}
"""For components: Volcano's charts pass flags that mean nothing here, and a literal `2>&1`."""

_VERBS = (lint, review, render, simulate, dev, explain, plugins, rules)
_COMPONENTS = (webhook, controller, scheduler, certs)


def _register(module: ModuleType, **settings: object) -> None:
    """Add a command: the function with the name of its module, and the module's examples."""
    name = module.__name__.rpartition(".")[2]
    examples = "\n".join(f"  {example}" for example in module.EXAMPLES)
    epilog = f"\b\nExamples:\n{examples}"
    app.command(name, epilog=epilog, context_settings=settings or None)(getattr(module, name))


for _verb in _VERBS:
    _register(_verb)
for _component in _COMPONENTS:
    _register(_component, **_ANY_FLAGS)


def _version(wanted: bool) -> None:
    if wanted:
        write(f"pumice {__version__}")
        exits.finish(exits.FINE)


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print it and exit."),
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Without the program's name; the process's own by default.

    Returns:
        The exit code.
    """
    _write_whatever_comes()
    try:
        code = _parse_and_run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        return _written_no_more(exits.PIPE_CLOSED)
    except OSError as error:
        if error.errno in _FULL:
            note(f"pumice: cannot write: {error.strerror}")
            return _written_no_more(exits.USAGE)
        if error.errno != errno.EPIPE:
            raise
        return _written_no_more(exits.PIPE_CLOSED)
    return code


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No room: on the disk, for the user, or in a file."""


def _write_whatever_comes() -> None:
    """Names of files need not be text, and a terminal need not know every character; both are shown escaped."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _parse_and_run(arguments: list[str]) -> int:
    try:
        returned = app(spread(arguments), prog_name="pumice", standalone_mode=False)
    except typer.Abort:
        return exits.INTERRUPTED
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else _command(arguments)
        hint = f" (see `{command} --help`)" if context is not None else ""
        several = error.messages if isinstance(error, exits.UserError) else [error.format_message()]
        for message in several:
            note(f"{paint(f'{command}:', 'red', sys.stderr)} {_one_line(message)}{hint}")
        return exits.USAGE
    return returned if isinstance(returned, int) else exits.FINE


def _command(arguments: list[str]) -> str:
    """The verb that was asked for, as a user would spell it."""
    verbs = {each.__name__.rpartition(".")[2] for each in (*_VERBS, *_COMPONENTS)}
    return f"pumice {arguments[0]}" if arguments and arguments[0] in verbs else "pumice"


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _written_no_more(code: int) -> int:
    # The interpreter flushes stdout once more on its way out and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
