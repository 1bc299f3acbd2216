"""`pumice plugins`: the plugins for `spec.plugins`, and a check of the plugin contract.

The plugin to check is a module, a module and a class, or a Python file.
"""

import importlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pumice.api.fields import did_you_mean
from pumice.cli import exits
from pumice.cli.exits import UserError
from pumice.cli.options import Output, whole_number
from pumice.cli.output import Format, json_line, paint, write, write_json

if TYPE_CHECKING:
    from pumice.plugins.arguments import Argument
    from pumice.testing import Result

EXAMPLES = (
    "pumice plugins",
    "pumice plugins pytorch",
    "pumice plugins -o json | jq '.[].name'",
    "pumice plugins check examples/job-plugin/pumice_jax.py",
    "pumice plugins check mypackage.plugins:Mine --examples 1000",
)


_CHECK = "check"
_EXAMPLE_WORDS = 2
"""Maximum number of arguments in an example."""


def plugins(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|check",
            help="Show only this plugin; `check` tests the contract of job plugins on your own plugin.",
        ),
    ] = None,
    module: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE",
            help="The plugin to check: package.module or file.py, with :Class if there are several.",
        ),
    ] = None,
    output: Output = Format.TEXT,
    examples: Annotated[
        int,
        typer.Option(
            "--examples",
            metavar="N",
            parser=whole_number(1),
            help="Number of Jobs that `check` tries for each promise of the contract.",
        ),
    ] = 100,
) -> None:
    """List the job plugins, show one, or check one.

    Plugins of installed packages are included. `check` exits with 1 if a plugin breaks the contract.
    """
    if name != _CHECK:
        if module is not None:
            raise UserError(f"{module!r} is one too many: expected NAME, or check MODULE")
        _list(name, output)
    elif module is None:
        raise UserError("check which plugin? Say MODULE, MODULE:Class or file.py")
    else:
        _check(module, examples, output)


def _list(name: str | None, output: Format) -> None:
    entries = _entries()
    if name is not None:
        known = [each["name"] for each in entries]
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise UserError(f"there is no plugin {name!r}{hint}")
        entries = [each for each in entries if each["name"] == name]
    if output is Format.JSON:
        write_json(entries)
        return
    for number, entry in enumerate(entries):
        if number:
            write("")
        _write(entry)
    if name is not None:
        write("\n  Example:\n    spec:\n      plugins:")
        write(f"        {name}: {json_line(entries[0]['example'])}")


def _write(entry: dict[str, Any]) -> None:
    origin = "" if entry["origin"] == "pumice" else f"  (from {entry['origin']})"
    write(f"{paint(entry['name'], 'bold')}{origin}")
    write(f"  {entry['summary']}")
    if entry["requires"]:
        write(f"  Adds: {', '.join(entry['requires'])}")
    for argument in entry["arguments"]:
        write(
            f"  --{argument['name']} ({argument['type']}, {_default(argument['default'])}): "
            f"{argument['help'].replace('`', '')}"
        )


def _example(arguments: "Iterable[Argument]") -> list[str]:
    """Words for `spec.plugins`: the first arguments that have a default."""
    from pumice.plugins.arguments import shown

    words = [f"--{each.name}={text}" for each in arguments if (text := shown(each.default))]
    return words[:_EXAMPLE_WORDS]


def _default(value: Any) -> str:
    """A default as a Job would write it."""
    from pumice.plugins.arguments import shown

    return f"default {text}" if (text := shown(value)) else "no default"


def _entries() -> list[dict[str, Any]]:
    from pumice.plugins import PluginError, builtin

    try:
        registry = builtin().with_entry_points()
    except PluginError as error:
        raise UserError(str(error)) from None
    return [
        {
            "name": plugin.name,
            "summary": plugin.summary,
            "requires": list(plugin.requires),
            "origin": registry.origin(plugin.name),
            "example": _example(plugin.arguments),
            "arguments": [
                {
                    "name": argument.name,
                    "type": argument.kind.name,
                    "default": argument.default,
                    "help": argument.help,
                }
                for argument in plugin.arguments
            ],
        }
        for plugin in registry.plugins
    ]


def _check(reference: str, count: int, output: Format) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _need_hypothesis(folder)
        from pumice.testing import job_plugin_results

        found = load(reference)
        tried = [(_called(each), job_plugin_results(each, examples=count)) for each in found]
    if output is Format.JSON:
        write_json([_as_json(name, results) for name, results in tried])
    else:
        for number, (name, results) in enumerate(tried):
            if number:
                write("")
            _show(name, reference, results)
    if any(result.problem for _, results in tried for result in results):
        exits.finish(exits.REFUSED)


def _called(found: Any) -> str:
    return str(getattr(found, "name", "") or getattr(found, "__name__", "") or found)


def _need_hypothesis(folder: str) -> None:
    if sys.modules.get("hypothesis"):
        return
    # Otherwise it would leave a directory with its database in the current directory.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", folder)
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        python = shlex.quote(sys.executable)
        # The environments that `uv tool` and `uv venv` make have no pip.
        command = f"{python} -m pip install" if find_spec("pip") else f"uv pip install -p {python}"
        raise UserError(
            f"check needs hypothesis, which is not installed beside Pumice: {command} hypothesis"
        ) from None


def _as_json(name: str, results: list["Result"]) -> dict[str, Any]:
    return {
        "plugin": name,
        "passed": not any(each.problem for each in results),
        "properties": [
            {
                "name": each.name,
                "text": each.text,
                "passed": not each.problem,
                "problem": each.problem,
                "example": None if each.job is None else {"job": each.job},
            }
            for each in results
        ],
    }


def _show(name: str, reference: str, results: list["Result"]) -> None:
    write(f"{paint(name, 'bold')} of {reference}")
    width = max(len(each.name) for each in results)
    for each in results:
        answer = paint("failed", "red") if each.problem else paint("ok", "green") + "    "
        write(f"  {answer}  {each.name.ljust(width)}  {each.text}")
        for line in each.details():
            write(f"          {line}")


def load(reference: str) -> list[Any]:
    """Load the classes or the object that a reference names.

    Args:
        reference: `package.module`, `file.py`, or either with `:Name` behind it. Without a name, all
            subclasses of `JobPlugin` that the module itself defines are meant.

    Raises:
        UserError: There is no such module, it cannot be imported, or it holds no plugin.
    """
    from pumice.plugins import JobPlugin

    place, _, name = reference.partition(":")
    if place.endswith(".py") and not Path(place).is_file():
        raise UserError(f"{place}: no such file")
    if not place.endswith(".py") and ("/" in place or Path(place).is_file()):
        raise UserError(f"{place}: expected a Python file that ends in .py, or a module")
    try:
        module = _module(place)
    except (Exception, SystemExit) as error:
        raise UserError(f"{place} cannot be imported: {error!r}") from error
    if name:
        found = getattr(module, name, None)
        if found is None:
            raise UserError(f"{place} has no {name!r}{did_you_mean(name, dir(module))}")
        return [found]
    plugins = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, JobPlugin)
        and each.__module__ == module.__name__
        and not each.__name__.startswith("_")
    ]
    if not plugins:
        raise UserError(f"{place} defines no subclass of pumice.plugins.JobPlugin")
    return plugins


def _module(place: str) -> ModuleType:
    file = Path(place).resolve()
    sys.path.insert(0, str(file.parent))  # of a module's name this is the current folder
    try:
        if file.suffix != ".py":
            return importlib.import_module(place)
        spec = spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules.setdefault(file.stem, module)  # where dataclasses look it up
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(file.parent))
