"""The registry of plugins and actions, passed as a value.

Others come from the entry points `pumice.scheduler_plugins` and `pumice.scheduler_actions`: each names a
`PluginSpec` or an `ActionSpec`.
"""

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

import msgspec

from pumice.api import not_here_yet
from pumice.scheduler.actions import (
    allocate,
    backfill,
    elect,
    enqueue,
    preempt,
    reclaim,
    reserve,
    shuffle,
)
from pumice.scheduler.plugins import (
    binpack,
    capacity,
    cdp,
    conformance,
    drf,
    fairshare,
    gang,
    network_topology_aware,
    nodegroup,
    nodeorder,
    overcommit,
    pdb,
    predicates,
    priority,
    proportion,
    reservation,
    resource_strategy_fit,
    resourcequota,
    sla,
    task_topology,
    tdm,
)
from pumice.scheduler.specs import ActionSpec, PluginSpec

_PLUGINS = "pumice.scheduler_plugins"
_ACTIONS = "pumice.scheduler_actions"

PLANNED_PLUGINS = frozenset(each.name for each in not_here_yet.TABLE if each.where == "plugin")
"""Volcano's plugins that Pumice does not have yet: a configuration may name them, they do nothing."""


class SchedulerRegistry(msgspec.Struct, frozen=True):
    """Plugins and actions by name."""

    plugins: Mapping[str, PluginSpec]
    actions: Mapping[str, ActionSpec]

    def extended(
        self, plugins: Iterable[PluginSpec] = (), actions: Iterable[ActionSpec] = ()
    ) -> "SchedulerRegistry":
        """A registry with more of them.

        Raises:
            ValueError: A name is taken.
        """
        more_plugins = {**self.plugins}
        more_actions = {**self.actions}
        for plugin in plugins:
            if plugin.name in more_plugins:
                raise ValueError(f"scheduler plugin {plugin.name} is registered twice")
            more_plugins[plugin.name] = plugin
        for action in actions:
            if action.name in more_actions:
                raise ValueError(f"scheduler action {action.name} is registered twice")
            more_actions[action.name] = action
        return SchedulerRegistry(more_plugins, more_actions)


def builtin_registry() -> SchedulerRegistry:
    """Built-in plugins and actions."""
    return SchedulerRegistry({}, {}).extended(
        plugins=(
            priority.SPEC,
            gang.SPEC,
            drf.SPEC,
            capacity.SPEC,
            conformance.SPEC,
            pdb.SPEC,
            predicates.SPEC,
            nodeorder.SPEC,
            binpack.SPEC,
            task_topology.SPEC,
            nodegroup.SPEC,
            network_topology_aware.SPEC,
            proportion.SPEC,
            overcommit.SPEC,
            sla.SPEC,
            resourcequota.SPEC,
            tdm.SPEC,
            cdp.SPEC,
            resource_strategy_fit.SPEC,
            fairshare.SPEC,
            reservation.SPEC,
        ),
        actions=(
            enqueue.SPEC,
            allocate.SPEC,
            backfill.SPEC,
            elect.SPEC,
            reserve.SPEC,
            preempt.SPEC,
            reclaim.SPEC,
            preempt.BY_GANG,
            reclaim.BY_GANG,
            shuffle.SPEC,
        ),
    )


def default_registry() -> SchedulerRegistry:
    """Built-in and installed plugins and actions.

    Raises:
        ValueError: An entry point is not a spec, or its name is taken.
    """
    entries = entry_points()  # once, because it reads the metadata of all packages
    return builtin_registry().extended(
        plugins=_installed(entries.select(group=_PLUGINS), PluginSpec),
        actions=_installed(entries.select(group=_ACTIONS), ActionSpec),
    )


T = TypeVar("T")


def _installed(entries: Iterable[EntryPoint], kind: type[T]) -> list[T]:
    found: list[T] = []
    for entry in sorted(entries, key=lambda entry: entry.name):
        spec = entry.load()
        if not isinstance(spec, kind):
            raise ValueError(
                f"entry point {entry.name} of {entry.group} ({entry.value}) must name a "
                f"{kind.__name__}, found {type(spec).__name__}"
            )
        found.append(spec)
    return found
