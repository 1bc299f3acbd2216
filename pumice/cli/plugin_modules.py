"""References to a plugin: a module, a module and a class, or a Python file."""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pumice.api.fields import did_you_mean
from pumice.cli.exits import UserError
from pumice.plugins import JobPlugin

__all__ = ["load"]


def load(reference: str) -> list[Any]:
    """Load the classes or the object that a reference names.

    Args:
        reference: `package.module`, `file.py`, or either with `:Name` behind it. Without a name, all
            subclasses of `JobPlugin` that the module itself defines are meant.

    Raises:
        UserError: There is no such module, it cannot be imported, or it holds no plugin.
    """
    place, _, name = reference.partition(":")
    if place.endswith(".py") and not Path(place).is_file():
        raise UserError(f"{place}: no such file")
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
