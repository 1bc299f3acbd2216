"""A plugin as its author names it: a module, a module and a class, or a Python file."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pumice.api.fields import did_you_mean
from pumice.cli.exits import UserError
from pumice.plugins import JobPlugin

__all__ = ["load"]


def load(reference: str) -> list[Any]:
    """What a reference names: classes, or an object that is meant to be a plugin.

    Args:
        reference: `package.module`, `file.py`, or either with `:Name` behind it. Without a name, all
            subclasses of `JobPlugin` that the module itself defines are meant.

    Raises:
        UserError: There is no such module, it cannot be imported, or it holds no plugin.
    """
    place, _, name = reference.partition(":")
    module = _module(place)
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
    file = Path(place)
    try:
        if file.suffix != ".py":
            with _first_on_path(Path.cwd()):
                return importlib.import_module(place)
        if not file.is_file():
            raise UserError(f"{place}: no such file")
        with _first_on_path(file.resolve().parent):
            return _of_file(file)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{place} cannot be imported: {error!r}") from error


def _of_file(file: Path) -> ModuleType:
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UserError(f"{file}: not a Python file")
    module = module_from_spec(spec)
    # Dataclasses look their module up while it is being made.
    before = sys.modules.get(file.stem)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    finally:
        if before is not None:
            sys.modules[file.stem] = before
    return module


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
