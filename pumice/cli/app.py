"""The command as a whole: registration of verbs, and error handling."""

import errno
import functools
import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from msgspec import Struct
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from pumice import __version__
from pumice.cli import exits
from pumice.cli.arguments import instead_of, spread, without_values
from pumice.cli.output import note, paint, write

PROGRAM = "pumice"
COMPLETION_VARIABLE = "_PUMICE_COMPLETE"
"""Variable with which the shell's script asks for completions."""

_COMPONENTS = ("webhook", "controller", "scheduler", "certs")
_NAMES = (
    "lint",
    "review",
    "render",
    "simulate",
    "trace",
    "run",
    "dev",
    "explain",
    "web",
    "migrate",
    "job",
    "queue",
    "plugins",
    "rules",
    "schema",
    "completion",
    *_COMPONENTS,
)
"""All commands in the order of the help, each named like its module."""


_WHOLE = 1000


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

    def get_short_help_str(self, limit: int = _WHOLE) -> str:
        """The first sentence; the program's help has a limit, what a shell shows has none."""
        return super().get_short_help_str(limit)


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
        """Parse the arguments up to the verb, among them boolean flags with a value; without any, show the help."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            note(ctx.get_help())
            exits.finish(exits.USAGE)
        return super().parse_args(ctx, _without_flag_values(self, ctx, args))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_epilog(self, ctx, formatter)

    def get_short_help_str(self, limit: int = _WHOLE) -> str:
        """The first sentence, as of a verb."""
        return super().get_short_help_str(limit)


class _Commands(Mapping[str, TyperCommand | TyperGroup]):
    """All commands by name; the module of a command is imported when the command is read."""

    def __getitem__(self, name: str) -> TyperCommand | TyperGroup:
        if name not in _NAMES:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


class _Root(_Group):
    """The program."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of the help."""
        del ctx
        return list(self.commands)


def _write_epilog(command: "_Command | _Group", ctx: Any, formatter: Any) -> None:
    if command.epilog:
        program = ctx.find_root().info_name or PROGRAM
        text = re.sub(rf"\b{PROGRAM} (?=[a-zA-Z])", f"{program} ", command.epilog)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(inspect.cleandoc(text))


app = typer.Typer(
    name="pumice",
    cls=_Root,
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


def _module(name: str) -> ModuleType:
    return import_module(f"pumice.cli.{name}")


@functools.cache
def _command(name: str) -> TyperCommand | TyperGroup:
    """A command: the function with the name of its module, or a group of commands, with the module's examples.

    A module that has both is a command which can have another behind it.
    """
    module = _module(name)
    settings = _ANY_FLAGS if name in _COMPONENTS else {}
    alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if hasattr(module, "VERBS"):
        group = typer.Typer(rich_markup_mode=None, no_args_is_help=False)
        for verb, (function, examples) in module.VERBS.items():
            _add(group, verb, function, examples, settings)
        first = [examples[0] for _, examples in module.VERBS.values()]
        given: dict[str, Any] = {"name": name, "cls": _Group}
        if hasattr(module, name):
            group.callback(invoke_without_command=True)(getattr(module, name))
            first = [*module.EXAMPLES, *first]
            given["subcommand_metavar"] = "[COMMAND]"
        else:
            given["help"] = module.HELP
        alone.add_typer(group, **given, epilog=_examples(first))
    else:
        _add(alone, name, getattr(module, name), module.EXAMPLES, settings)
    found = get_group(alone).commands[name]
    assert isinstance(found, TyperCommand | TyperGroup)
    return found


def _add(
    group: typer.Typer,
    name: str,
    function: Callable[..., object],
    examples: Sequence[str],
    settings: dict[str, bool],
) -> None:
    added = group.command(
        name, cls=_Command, epilog=_examples(examples), context_settings=settings or None
    )
    added(_with_options(function))


def _with_options(verb: Callable[..., object]) -> Callable[..., object]:
    """A verb as the parser of options takes it: with an option for each field where a parameter is a struct."""
    groups: dict[str, type] = {}
    options: list[inspect.Parameter] = []
    for each in inspect.signature(verb).parameters.values():
        if isinstance(each.annotation, type) and issubclass(each.annotation, Struct):
            groups[each.name] = each.annotation
            options += inspect.signature(each.annotation).parameters.values()
        else:
            options.append(each)
    if not groups:
        return verb

    @functools.wraps(verb)
    def parsed(**values: Any) -> object:
        for name, group in groups.items():
            fields = inspect.signature(group).parameters
            values[name] = group(**{field: values.pop(field) for field in fields})
        return verb(**values)

    by_name = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options]
    parsed.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    parsed.__annotations__ = {each.name: each.annotation for each in by_name}
    return parsed


def _examples(examples: Sequence[str]) -> str:
    lines = "\n".join(f"  {example}" for example in examples)
    return f"\b\nExamples:\n{lines}"


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
    lost = _prepare_streams()
    try:
        code = _parse_and_run(sys.argv[1:] if arguments is None else list(arguments), program)
        sys.stdout.flush()
        if lost is not None and lost.has_data:
            note(f"{program}: cannot write: stdout is closed")
            return exits.USAGE
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


class _LostOutput(io.FileIO):
    """What is written to a stdout that the caller has closed: it is discarded.

    Attributes:
        has_data: Whether anything was written.
    """

    has_data = False

    def __init__(self) -> None:
        super().__init__(os.devnull, "w")

    def write(self, data: Any) -> int:
        """Discard some bytes."""
        self.has_data = True
        return super().write(data)


def _prepare_streams() -> _LostOutput | None:
    """Discard output that the caller has closed (`>&-`), and escape what the terminal's encoding lacks.

    That are undecodable bytes in file names, too. Stdin that is closed is empty.

    Returns:
        What takes the output if stdout is closed.
    """
    lost = None
    for name, mode in (("stdin", "r"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    if sys.stdout is None:
        lost = _LostOutput()
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(lost), encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return lost


def _parse_and_run(arguments: list[str], program: str) -> int:
    if COMPLETION_VARIABLE in os.environ:
        _module("completion").prepare()
    try:
        returned = app(
            spread(arguments),
            prog_name=program,
            complete_var=COMPLETION_VARIABLE,
            standalone_mode=False,
        )
    except typer.Abort:
        return exits.INTERRUPTED
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else _as_typed(arguments, program)
        hint = f" (see `{command} --help`)" if context is not None else ""
        several = error.messages if isinstance(error, exits.UserError) else [_message(error)]
        for message in several:
            note(f"{paint(f'{command}:', 'red', sys.stderr)} {_one_line(message)}{hint}")
        return exits.USAGE
    return returned if isinstance(returned, int) else exits.FINE


def _as_typed(arguments: list[str], program: str) -> str:
    """The verb of the arguments, as a user would type it."""
    if not arguments or arguments[0] not in _NAMES:
        return program
    group = getattr(_module(arguments[0]), "VERBS", {})
    depth = 2 if len(arguments) > 1 and arguments[1] in group else 1
    return " ".join([program, *arguments[:depth]])


def _message(error: typer.TyperException) -> str:
    """What the parser of options says, with what does the same if the user took a word of another tool."""
    message = error.format_message().replace(
        ": Value error, ", ": "
    )  # pydantic's words, which typer uses
    context = getattr(error, "ctx", None)
    if context is not None and message.startswith("Missing option"):
        option = error.param  # type: ignore[attr-defined]
        call = f"{context.command_path} {option.opts[0]} {option.metavar or 'VALUE'}"
        return f"{message.rstrip('.')}; write `{call}`"
    if message == "Missing argument 'FILE'.":
        return "Missing argument 'FILE'; - reads stdin"
    unknown = re.match(r"No such (?:command|option):? '?([^' ]+)|Got unexpected extra ", message)
    if context is None or unknown is None:
        return message
    command = context.command_path.removeprefix(context.find_root().command_path).strip()
    word = (unknown[1] or "").rstrip(".")
    instead = instead_of(command, word)
    said = re.split(r"\.? Did you mean|\. \(Poss| \(Poss", message.rstrip("."))[0]
    return f"{said}; use {instead}" if instead else message


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _discard_output(code: int) -> int:
    # The interpreter flushes stdout again at exit and would report the error again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
