"""Each function that a plugin registers makes a difference: without it a named case fails.

`tests/cases/scheduler/registered.yaml` names the case. A plugin that is added, or registers one more function, needs a row there.
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from pumice.scheduler.points import Extensions
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.registry import builtin_registry
from tests.unit.scheduler.scenarios import Raw, load_document

FUNCTIONS = Extensions.points()
PLUGINS = builtin_registry().plugins
TABLE: dict[str, list[Raw]] = load_document("registered")
ROWS = [(plugin, row) for plugin, rows in TABLE.items() for row in rows]


def _is_meant(row: Raw, kind: str, name: str) -> bool:
    return bool(row["function"] == kind and row.get("name", name) == name)


@contextmanager
def _without(plugin: str, row: Raw) -> Iterator[set[str]]:
    """Leave out one function of a plugin; yields the names of what is left out."""
    left_out: set[str] = set()

    def patched(kind: str, register: Callable[..., None]) -> Callable[..., None]:
        def call(self: Any, function: Any, **options: Any) -> None:
            name = getattr(function, "__name__", "")
            if self._plugin == plugin and _is_meant(row, kind, name):
                left_out.add(name)
            else:
                register(self, function, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for kind in FUNCTIONS:
            patch.setattr(Registrar, kind, patched(kind, getattr(Registrar, kind)))
        yield left_out


def _case(where: str, wanted: str | None) -> Callable[[], None]:
    """A test without fixtures, and the case of it that has a name."""
    file, _, name = where.partition("::")
    module = importlib.import_module("tests.unit.scheduler." + file.replace("/", "."))
    test = getattr(module, name)
    if wanted is None:
        return lambda: test()
    marks = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    for choice in product(*map(_parameters, marks)):
        if "-".join(title for title, _ in choice) == wanted:
            given = {key: value for _, values in choice for key, value in values.items()}
            return lambda: test(**given)
    raise AssertionError(f"{where} has no case {wanted}")


def _parameters(mark: pytest.Mark) -> Iterator[tuple[str, Raw]]:
    """Names and values of the cases of a `parametrize`."""
    names, cases = mark.args
    keys = [key.strip() for key in names.split(",")] if isinstance(names, str) else list(names)
    ids = mark.kwargs.get("ids")
    for place, case in enumerate(cases):
        values = case if len(keys) > 1 else (case,)
        title = ids(case) if callable(ids) else ids[place] if ids else "-".join(map(str, values))
        yield title, dict(zip(keys, values, strict=True))


def _registered_by(plugin: str) -> Iterator[tuple[str, str]]:
    """What the source of a plugin registers: kinds and names of functions."""
    source = inspect.getsource(sys.modules[PLUGINS[plugin].build.__module__])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, kind = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and owner.id == "register" and kind in FUNCTIONS:
                function = node.args[0]
                last = ast.unparse(function).rpartition(".")[2]
                yield kind, "<lambda>" if isinstance(function, ast.Lambda) else last


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_function_has_its_case(plugin: str) -> None:
    rows = TABLE.get(plugin, [])
    registered = list(_registered_by(plugin))
    assert registered
    missing = [each for each in registered if not any(_is_meant(row, *each) for row in rows)]
    assert missing == [], "name a case in tests/cases/scheduler/registered.yaml"
    unknown = [row for row in rows if not any(_is_meant(row, *each) for each in registered)]
    assert unknown == []


@pytest.mark.parametrize(
    ("plugin", "row"),
    ROWS,
    ids=[f"{plugin}-{row['function']}-{row.get('name', '')}".strip("-") for plugin, row in ROWS],
)
def test_its_case_fails_without_it(plugin: str, row: Raw) -> None:
    case = _case(row["test"], row.get("case"))
    with _without(plugin, row) as left_out, pytest.raises(AssertionError):
        case()
    assert left_out
