"""The command as a whole: registration of verbs, and error handling."""

import errno
import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pumice import __version__
from pumice.cli import (
    certs,
    completion,
    controller,
    dev,
    exits,
    explain,
    job,
    lint,
    plugins,
    queue,
    render,
    review,
    rules,
    scheduler,
    schema,
    simulate,
    webhook,
)
from pumice.cli.arguments import instead_of, spread, without_values
from pumice.cli.output import note, paint, write

__all__ = ["app", "run"]

PROGRAM = "pumice"


class _Command(TyperCommand):
    """A verb. Its examples use the program name that the user typed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, among them boolean flags with a value."""
        return super().parse_args(ctx, _without_flag_values(self, ctx, args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the name in the usage line: `FILE...` where typer writes `{FILE}`."""
        arguments = [each for each in self.params if each.param_type_name == "argument"]
        pieces = super().collect_usage_pieces(ctx)
        options = pieces[: len(pieces) - len(arguments)]
        return [*options, *map(_usage, arguments)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_epilog(self, ctx, formatter)


def _without_flag_values(command: "_Command | _Group", ctx: Any, args: list[str]) -> list[str]:
    """Arguments without values of boolean flags; as they are where a shell asks what may follow."""
    return args if ctx.resilient_parsing else without_values(command.params, args)


def _usage(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    if name.startswith("["):
        return str(name)
    word = f"{name}..." if argument.nargs == -1 else str(name)
    return word if argument.required else f"[{word}]"


class _Group(TyperGroup):
    """A group of commands. Its examples use the program name that the user typed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments up to the verb, among them boolean flags with a value."""
        return super().parse_args(ctx, _without_flag_values(self, ctx, args))

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands, in the order in which they are defined; groups would come last otherwise."""
        order = [_name(each) for each in (*_VERBS, *_COMPONENTS)]
        found = list(super().list_commands(ctx))
        return sorted(found, key=lambda name: order.index(name) if name in order else -1)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_epilog(self, ctx, formatter)


def _write_epilog(command: "_Command | _Group", ctx: Any, formatter: Any) -> None:
    if command.epilog:
        program = ctx.find_root().info_name or PROGRAM
        text = re.sub(rf"\b{PROGRAM} (?=[a-zA-Z])", f"{program} ", command.epilog)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(inspect.cleandoc(text))


app = typer.Typer(
    name="pumice",
    cls=_Group,
    help="A Volcano-compatible batch stack for Kubernetes: admission, wiring, gang scheduling.",
    epilog="`pumice VERB --help` shows a verb's options and examples.",
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_ANY_FLAGS = {"ignore_unknown_options": True, "allow_extra_args": True}
"""For components: Volcano's charts pass flags that have no meaning here, and a literal `2>&1`."""

_VERBS = (
    lint,
    review,
    render,
    simulate,
    dev,
    explain,
    job,
    queue,
    plugins,
    rules,
    schema,
    completion,
)
_COMPONENTS = (webhook, controller, scheduler, certs)


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _register(module: ModuleType, **settings: object) -> None:
    """Add a command: the function with the name of its module, or a group of commands, with the module's examples."""
    name = _name(module)
    if not hasattr(module, "VERBS"):
        _add(app, name, getattr(module, name), module.EXAMPLES, settings)
        return
    group = typer.Typer(help=module.HELP, rich_markup_mode=None, no_args_is_help=False)
    for verb, (function, examples) in module.VERBS.items():
        _add(group, verb, function, examples, settings)
    first = [examples[0] for _, examples in module.VERBS.values()]
    app.add_typer(group, name=name, cls=_Group, epilog=_examples(first))


def _add(
    group: typer.Typer,
    name: str,
    function: Callable[..., object],
    examples: Sequence[str],
    settings: dict[str, object],
) -> None:
    added = group.command(
        name, cls=_Command, epilog=_examples(examples), context_settings=settings or None
    )
    added(function)


def _examples(examples: Sequence[str]) -> str:
    lines = "\n".join(f"  {example}" for example in examples)
    return f"\b\nExamples:\n{lines}"


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


def run(arguments: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Run the command.

    Args:
        arguments: Without the program's name; the process's own by default.
        program: How the user called it, for its help and its messages.

    Returns:
        The exit code.
    """
    _prepare_output()
    try:
        code = _parse_and_run(sys.argv[1:] if arguments is None else list(arguments), program)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        return _discard_output(exits.PIPE_CLOSED)
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return _discard_output(exits.PIPE_CLOSED)  # typer exits with 1, which means refused here
    except OSError as error:
        if error.errno in _FULL:
            note(f"{program}: cannot write: {error.strerror}")
            return _discard_output(exits.USAGE)
        if error.errno != errno.EPIPE:
            raise
        return _discard_output(exits.PIPE_CLOSED)
    return code


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors about missing space: on the disk, in a quota, or by the maximum file size."""


def _prepare_output() -> None:
    """Discard output that the caller has closed (`>&-`), and escape what the terminal's encoding lacks.

    That are undecodable bytes in file names, too.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _parse_and_run(arguments: list[str], program: str) -> int:
    if completion.VARIABLE in os.environ:
        completion.prepare()
    try:
        returned = app(
            spread(arguments),
            prog_name=program,
            complete_var=completion.VARIABLE,
            standalone_mode=False,
        )
    except typer.Abort:
        return exits.INTERRUPTED
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else _command(arguments, program)
        hint = f" (see `{command} --help`)" if context is not None else ""
        several = error.messages if isinstance(error, exits.UserError) else [_message(error)]
        for message in several:
            note(f"{paint(f'{command}:', 'red', sys.stderr)} {_one_line(message)}{hint}")
        return exits.USAGE
    return returned if isinstance(returned, int) else exits.FINE


def _command(arguments: list[str], program: str) -> str:
    """The verb of the arguments, as a user would type it."""
    modules = {_name(each): each for each in (*_VERBS, *_COMPONENTS)}
    if not arguments or arguments[0] not in modules:
        return program
    group = getattr(modules[arguments[0]], "VERBS", {})
    depth = 2 if len(arguments) > 1 and arguments[1] in group else 1
    return " ".join([program, *arguments[:depth]])


def _message(error: typer.TyperException) -> str:
    """What the parser of options says, with what does the same if the user took a word of another tool."""
    message = error.format_message().replace(
        ": Value error, ", ": "
    )  # pydantic's words, which typer uses
    context = getattr(error, "ctx", None)
    unknown = re.match(r"No such (?:command|option):? '?([^' ]+)", message)
    if context is None or unknown is None:
        return message
    command = context.command_path.removeprefix(context.find_root().command_path).strip()
    word = unknown[1].rstrip(".")
    instead = instead_of(command, word)
    return f"{message.rstrip('.')}; use {instead}" if instead else message


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _discard_output(code: int) -> int:
    # The interpreter flushes stdout again at exit and would report the error again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
