"""The registry of plugins: built-in ones, and those of installed packages.

A registry is a value that is passed to its users; there is no global one, and importing a plugin registers nothing.
Every plugin is checked when it is registered, so that an invalid one is reported with its origin at start-up.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pumice.api.fields import Suggestions
from pumice.api.names import dns_label_problem
from pumice.plugins.arguments import ArgumentSpec
from pumice.plugins.env import Env
from pumice.plugins.hcclrank import HcclRank
from pumice.plugins.interface import JobPlugin, PluginError
from pumice.plugins.mpi import Mpi
from pumice.plugins.mxnet import MXNet
from pumice.plugins.pytorch import PyTorch
from pumice.plugins.ray import Ray
from pumice.plugins.roles import Roles
from pumice.plugins.ssh import Ssh
from pumice.plugins.svc import Svc
from pumice.plugins.task_topology import TaskTopology
from pumice.plugins.tensorflow import TensorFlow

ENTRY_POINT_GROUP = "pumice.job_plugins"
"""Entry-point group in which a package lists its job plugins: name and class."""

_BUILTIN = "pumice"


@dataclass(frozen=True, slots=True)
class Registered:
    """A plugin and its origin.

    Attributes:
        plugin: The plugin.
        origin: `pumice`, or its package and module.
    """

    plugin: JobPlugin
    origin: str


@dataclass(frozen=True)
class Registry:
    """The plugins that Jobs may name, in the order in which they are applied.

    Attributes:
        entries: The plugins with their origins.
    """

    entries: tuple[Registered, ...]

    @cached_property
    def plugins(self) -> tuple[JobPlugin, ...]:
        """All plugins in the order in which they are applied."""
        return tuple(entry.plugin for entry in self.entries)

    @cached_property
    def by_name(self) -> Mapping[str, Registered]:
        """All plugins by name, in that order."""
        return {entry.plugin.name: entry for entry in self.entries}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all plugins, in that order."""
        return tuple(self.by_name)

    @cached_property
    def annotating(self) -> frozenset[str]:
        """Names of the plugins that write annotations on a Job."""
        own = JobPlugin.job_annotations
        return frozenset(
            each.name for each in self.plugins if type(each).job_annotations is not own
        )

    def get(self, name: str) -> JobPlugin | None:
        """Find a plugin by name."""
        entry = self.by_name.get(name)
        return entry.plugin if entry is not None else None

    def origin(self, name: str) -> str:
        """Origin of a plugin; empty for an unknown name."""
        entry = self.by_name.get(name)
        return entry.origin if entry is not None else ""

    def requires(self, name: str) -> tuple[str, ...]:
        """Plugins that this plugin requires in a Job; empty for an unknown name."""
        plugin = self.get(name)
        return plugin.requires if plugin is not None else ()

    def unknown(self, name: str, suggestions: Suggestions | None = None) -> str:
        """The message about a name that is not a plugin, with the closest plugin as a suggestion.

        Args:
            name: The name.
            suggestions: Finds the plugin; shared by many lookups.
        """
        hint = (suggestions or Suggestions()).did_you_mean(name, self.names)
        return f'unable to find job plugin "{name}"{hint or "; known are " + ", ".join(self.names)}'

    def with_plugin(self, plugin: JobPlugin, origin: str) -> "Registry":
        """A registry with one more plugin.

        Raises:
            PluginError: The plugin is invalid or its name is taken.
        """
        return self._with([Registered(plugin, origin)])

    def with_entry_points(self, found: Iterable[EntryPoint] | None = None) -> "Registry":
        """A registry with the plugins of installed packages added.

        Args:
            found: Entry points to load instead of those of the running interpreter.

        Raises:
            PluginError: A plugin cannot be loaded, is invalid, or its name is taken.
        """
        if found is None:
            found = entry_points(group=ENTRY_POINT_GROUP)
        ordered = sorted(found, key=lambda each: (each.name, each.value))
        return self._with([_load(each) for each in ordered])

    def _with(self, added: Sequence[Registered]) -> "Registry":
        entries = self.entries
        for each in added:
            _inspect(each)
            taken = next((e for e in entries if e.plugin.name == each.plugin.name), None)
            if taken is not None:
                raise PluginError(
                    f'plugin "{each.plugin.name}" of {each.origin}: the name is taken by the plugin '
                    f"of {taken.origin}"
                )
            entries = (*entries, each)
        widened = Registry(_ordered(entries))
        for each in added:
            _inspect_requires(each, widened)
        return widened


def builtin() -> Registry:
    """The built-in plugins."""
    plugins = (
        Svc(),
        Ssh(),
        Env(),
        TensorFlow(),
        PyTorch(),
        Mpi(),
        MXNet(),
        Ray(),
        Roles(),
        HcclRank(),
        TaskTopology(),
    )
    return Registry(_ordered(tuple(Registered(each, _BUILTIN) for each in plugins)))


def dependencies(
    plugins: Mapping[str, Sequence[str]] | None, registry: Registry
) -> dict[str, list[str]]:
    """Plugins that a Job's plugins require and that the Job does not name."""
    present = dict.fromkeys(plugins or ())
    added: dict[str, list[str]] = {}
    pending = list(present)
    for each in pending:  # which grows meanwhile
        for name in registry.requires(each):
            if name not in present and name not in added:
                added[name] = []
                pending.append(name)
    return added


def _load(entry_point: EntryPoint) -> Registered:
    package = entry_point.dist.name if entry_point.dist is not None else "an unknown package"
    origin = f"{package} ({entry_point.value})"
    try:
        loaded = entry_point.load()
        plugin = loaded() if isinstance(loaded, type) else loaded
    except (Exception, SystemExit) as error:
        raise PluginError(
            f'plugin "{entry_point.name}" of {origin} cannot be loaded: {error!r}'
        ) from error
    return Registered(plugin, origin)


def _inspect(entry: Registered) -> None:
    # The object of an entry point may have any type.
    plugin: Any = entry.plugin
    if not isinstance(plugin, JobPlugin):
        raise PluginError(
            f"{entry.origin} gives {plugin!r}; expected a subclass of pumice.plugins.JobPlugin"
        )
    fault = _fault(plugin)
    if fault:
        raise PluginError(f'plugin "{plugin.name}" of {entry.origin}: {fault}')


def _fault(plugin: Any) -> str:
    problem = dns_label_problem(plugin.name) if isinstance(plugin.name, str) else "must be a string"
    if problem:
        return f"name: {problem}"
    if not isinstance(plugin.summary, str) or not plugin.summary:
        return "summary must be a sentence"
    for attribute in ("requires", "after"):
        value = getattr(plugin, attribute)
        if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
            return f"{attribute} must be a tuple of plugin names, found {value!r}"
    if not isinstance(plugin.arguments, ArgumentSpec):
        return f"arguments must be an ArgumentSpec, found {plugin.arguments!r}"
    return ""


def _inspect_requires(entry: Registered, registry: Registry) -> None:
    for name in entry.plugin.requires:
        if name not in registry.names:
            raise PluginError(
                f'plugin "{entry.plugin.name}" of {entry.origin}: requires a plugin that does not exist: {registry.unknown(name)}'
            )


def _ordered(entries: tuple[Registered, ...]) -> tuple[Registered, ...]:
    """Sort by `after`; otherwise in the order of registration."""
    by_name = {entry.plugin.name: entry for entry in entries}
    sorter = TopologicalSorter(
        {name: [n for n in entry.plugin.after if n in by_name] for name, entry in by_name.items()}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " after ".join(reversed(error.args[1]))
        raise PluginError(f"plugins cannot be ordered: {circle}") from error
    ordered: list[str] = []
    ready: list[str] = []
    while sorter.is_active():
        ready.extend(sorter.get_ready())
        first = min(ready, key=list(by_name).index)
        ready.remove(first)
        ordered.append(first)
        sorter.done(first)
    return tuple(by_name[name] for name in ordered)
