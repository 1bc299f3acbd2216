"""Fill the generated parts of the pages on the scheduler's plugins, `docs/scheduler/plugins/NAME.md` and their index.

Run as `python -m tools.scheduler_pages [--check] docs/scheduler`. What stands between

    <!-- generated: WHAT -->
    <!-- end generated -->

follows from the code. WHAT is

- `plugins`: all plugins with their summaries, and links to their pages;
- `functions NAME`: the functions that a plugin registers, what each decides, and which actions ask;
- `arguments NAME`: the arguments of a plugin.
"""

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from pumice.plugins.arguments import shown
from pumice.scheduler.arguments import SchedulerArgument
from pumice.scheduler.points import Extensions
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.registry import builtin_registry
from pumice.scheduler.specs import PluginSpec
from tools.generated import settle, table

__all__ = ["FUNCTIONS", "argument_rows", "filled", "registered", "switch_of"]

_BLOCK = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end generated -->)", re.DOTALL)

_PLACING = ("allocate", "backfill", "preempt", "reclaim")

FUNCTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "queue_order": ("which queue goes first", ("enqueue", *_PLACING)),
    "job_order": ("which gang of a queue goes first", ("enqueue", *_PLACING)),
    "task_order": ("which pod of a gang goes first", _PLACING),
    "job_valid": ("whether a gang can be tried at all", (*_PLACING, "elect", "reserve")),
    "job_enqueueable": ("whether a gang may enter its queue", ("enqueue",)),
    "job_enqueued": (
        "counts a gang that has entered its queue",
        ("enqueue", "allocate", "backfill"),
    ),
    "job_entitled": (
        "whether a queue may take back what a gang needs, so that a full cluster does not keep it out",
        ("enqueue",),
    ),
    "job_ready": (
        "whether the places found for a gang may be used",
        ("allocate", "backfill", "elect", "reserve"),
    ),
    "job_pipelined": (
        "whether a gang that cannot start yet may hold the places found for it",
        _PLACING,
    ),
    "job_starving": ("whether pods may be evicted for a gang", ("preempt", "reclaim")),
    "overused": ("whether a queue has all that it may have", ("allocate", "reclaim")),
    "allocatable": ("whether a queue may take a pod", _PLACING),
    "preemptive": ("whether pods of other queues may be evicted for a pod", ("reclaim",)),
    "preemptable": ("which pods may go for a pod of their own queue", ("preempt",)),
    "reclaimable": ("which pods may go for a pod of another queue", ("reclaim",)),
    "victim_queue_order": ("of which queue pods go first", ("reclaim",)),
    "victim_tasks": ("which pods go without another pod taking their place", ("shuffle",)),
    "evictable": ("whether such a pod may go", ("shuffle",)),
    "target_job": ("for which gang nodes are reserved", ("elect",)),
    "reserved_nodes": ("which node is reserved next", ("reserve",)),
    "pod_check": ("whether a pod can be placed at all", _PLACING),
    "node_filter": ("which nodes a pod may use", (*_PLACING, "elect", "reserve")),
    "domain_filter": (
        "which nodes a pod may use, where that depends on pods of other nodes too",
        _PLACING,
    ),
    "node_score": ("which of these nodes is best", _PLACING),
    "domain_score": (
        "which of these nodes is best, where that depends on pods of other nodes too",
        _PLACING,
    ),
    "task_score": (
        "which of these nodes is best for one pod of a gang",
        ("allocate", "backfill"),
    ),
    "on_allocate": ("counts a pod that got a place", _PLACING),
    "on_deallocate": ("counts a pod that lost its place", (*_PLACING, "shuffle")),
}
"""What plugins may register: what each function decides, and the actions that ask it."""


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
        case ["functions", name] if name in plugins:
            return table(
                ("function", "what it decides", "asked by", "switch"), _functions(plugins[name])
            )
        case ["arguments", name] if name in plugins:
            return _arguments(plugins[name].arguments)
        case _:
            raise ValueError(f"nothing is generated for {' '.join(what)!r}")


def _arguments(arguments: tuple[SchedulerArgument, ...]) -> str:
    rows = argument_rows(arguments)
    text = table(("argument", "default", "what it does"), rows) if rows else "None.\n"
    absent = ", ".join(f"`{each.name}`" for each in arguments if each.is_absent)
    if absent:
        text += f"\nAccepted with a warning, without effect in this version: {absent}.\n"
    return text


def _functions(spec: PluginSpec) -> Iterator[tuple[str, ...]]:
    for name in registered(spec):
        decides, actions = FUNCTIONS[name]
        switch = switch_of(name)
        listed = ", ".join(f"`{each}`" for each in actions)
        yield f"`{name}`", decides, listed, f"`{switch}`" if switch else ""


def registered(spec: PluginSpec) -> list[str]:
    """Names of the functions that a plugin registers, in the order of `FUNCTIONS`; some only with certain arguments.

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
    return [name for name in FUNCTIONS if name in names]


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


class _Switches(dict[str, bool]):
    """Switches that are all on, and note which of them was asked about."""

    def __missing__(self, name: str) -> bool:
        self[name] = True
        return True


def switch_of(function: str) -> str:
    """Switch of the configuration that turns a function off; empty when none does."""
    switches = _Switches()
    register: Callable[..., Any] = getattr(Registrar(Extensions(), "plugin", 0, switches), function)
    register(lambda *_: None)
    return next(iter(switches), "")


def argument_rows(arguments: tuple[SchedulerArgument, ...]) -> list[tuple[str, str, str]]:
    """Rows of a table of arguments, without those that have no effect."""
    return [
        (
            f"`{each.name}{'…' if each.is_prefix else ''}`",
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
    parser.add_argument("--check", action="store_true", help="only compare, exit 1 on a difference")
    options = parser.parse_args(arguments)
    pages = [options.folder / "index.md", *sorted((options.folder / "plugins").glob("*.md"))]
    settled = [settle(page, filled(page.read_text()), check=options.check) for page in pages]
    return 0 if all(settled) else 1


if __name__ == "__main__":
    sys.exit(main())
