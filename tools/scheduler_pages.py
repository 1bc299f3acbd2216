"""Fill the generated parts of pages: on the scheduler's plugins, `docs/scheduler/plugins/NAME.md`, their index, and others.

Run as `python -m tools.scheduler_pages [--check] docs/scheduler PAGE…`. What stands between

    <!-- generated: WHAT -->
    <!-- end generated -->

follows from the code. WHAT is

- `plugins`: all plugins with their summaries, and links to their pages;
- `points`: the extension points: what plugins may register, and how several answers become one;
- `combinations`: what the words for that mean;
- `functions NAME`: the functions that a plugin registers;
- `arguments NAME`: the arguments of a plugin;
- `missing`: what is not here yet;
- `stricter`: the rules that are stricter than Volcano's.
"""

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

from pumice.api.not_here_yet import TABLE, NotHereYet
from pumice.plugins.arguments import shown
from pumice.scheduler.arguments import SchedulerArgument
from pumice.scheduler.points import Combined, Extensions
from pumice.scheduler.registry import builtin_registry
from pumice.scheduler.specs import PluginSpec
from tools.generated import settle_blocks, table
from tools.rules_page import stricter

_BLOCK = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end generated -->)", re.DOTALL)


def filled(text: str) -> str:
    """A page with every generated part up to date.

    Raises:
        ValueError: A part is about something that there is not.
    """
    return _BLOCK.sub(lambda part: f"{part[1]}{_content(part[2].split())}{part[3]}", text)


def _content(what: list[str]) -> str:
    plugins = builtin_registry().plugins
    match what:
        case ["plugins"]:
            rows = (
                (f"[`{name}`](plugins/{name}.md)", spec.summary) for name, spec in plugins.items()
            )
            return table(("plugin", "what it does"), rows)
        case ["points"]:
            header = ("function", "what it decides", "of several", "asked by", "switch")
            return table(header, _points())
        case ["combinations"]:
            words = ((f"*{_word(each)}*", str(each)) for each in Combined)
            return table(("of several", "result"), words)
        case ["functions" | "arguments", name] if name not in plugins:
            raise ValueError(
                f"there is no scheduler plugin {name!r}; list a new one in pumice/scheduler/registry.py"
            )
        case ["functions", name]:
            named = ", ".join(f"`{each}`" for each in registered(plugins[name]))
            return f"{named}: [what each decides](../index.md#functions).\n"
        case ["arguments", name]:
            return _arguments(plugins[name].arguments)
        case ["missing"]:
            return table(
                ("what", "with Pumice today", "what to do", "workload that relies on it"),
                map(_missing, TABLE),
            )
        case ["stricter"]:
            return "".join(stricter())
        case _:
            raise ValueError(f"nothing is generated for {' '.join(what)!r}")


_CODE = re.compile(r"(?<![`\w/-])((?:[a-z]+\.)+[a-z]+/[\w.…-]+|[a-z]+[A-Z]\w*)")
"""Names of fields and resources in a text for people."""


def _missing(row: NotHereYet) -> tuple[str, ...]:
    name = row.name if row.where == "field" else f"{row.where} `{row.name}`"
    return *(_CODE.sub(r"`\1`", text) for text in (name, row.outcome, row.remedy)), row.harm


def _arguments(arguments: tuple[SchedulerArgument, ...]) -> str:
    rows = argument_rows(arguments)
    text = table(("argument", "default", "what it does"), rows) if rows else "None.\n"
    absent = ", ".join(f"`{each.name}`" for each in arguments if each.is_absent)
    if absent:
        text += f"\nAccepted with a warning, without effect in this version: {absent}.\n"
    return text


_PLACING = frozenset({"allocate", "backfill", "preempt", "gangpreempt", "reclaim", "gangreclaim"})
"""The actions that look for places, which ask many functions; the page names them once."""


def _points() -> Iterator[tuple[str, ...]]:
    for name, point in Extensions.points().items():
        short = _PLACING if {*point.asked_by} >= _PLACING else frozenset()
        named = [f"`{each}`" for each in point.asked_by if each not in short]
        asked_by = ", ".join([*named, "*placing*"] if short else named)
        switch = f"`{point.switch}`" if point.switch else ""
        yield f"`{name}`", point.question, f"*{_word(point.combined)}*", asked_by, switch


def _word(combined: Combined) -> str:
    return combined.name.lower().replace("_", " ")


def registered(spec: PluginSpec) -> list[str]:
    """Names of the functions that a plugin registers, in the order of `Extensions`; some only with certain arguments.

    Raises:
        ValueError: The plugin hands its registrar on, so that its source does not say what it registers.
    """
    nodes = list(ast.walk(ast.parse(inspect.getsource(sys.modules[spec.build.__module__]))))
    called = [
        node for node in nodes if isinstance(node, ast.Attribute) and _is_registrar(node.value)
    ]
    own = [part for node in nodes if _is_own_method(node) for part in node.args]
    if len(called) + sum(map(_is_registrar, own)) != sum(map(_is_registrar, nodes)):
        raise ValueError(
            f"plugin {spec.name}: call functions of `register` in the plugin's own module only"
        )
    names = {node.attr for node in called}
    return [name for name in Extensions.points() if name in names]


def _is_own_method(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a method of the plugin is called, whose source is here."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    )


def _is_registrar(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "register"


def argument_rows(arguments: tuple[SchedulerArgument, ...]) -> list[tuple[str, str, str]]:
    """Rows of a table of arguments, without those that have no effect."""
    return [
        (
            f"`{each.name}{'…' if each.is_prefix else ''}{each.suffix}`",
            f"`{shown(each.default)}`" if shown(each.default) else "",
            each.summary,
        )
        for each in arguments
        if not each.is_absent
    ]


def main(arguments: list[str] | None = None) -> int:
    """Write or check; exit code 1 when a page is stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.scheduler_pages", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("others", type=Path, nargs="*", metavar="PAGE")
    parser.add_argument("--check", action="store_true", help="only compare, exit 1 on a difference")
    options = parser.parse_args(arguments)
    pages = [options.folder / "index.md", *sorted((options.folder / "plugins").glob("*.md"))]
    pages += options.others
    return 0 if settle_blocks(pages, filled, check=options.check) else 1


if __name__ == "__main__":
    sys.exit(main())
