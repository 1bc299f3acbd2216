"""The plugins that a Job names, found and with their arguments read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pumice.api.jobs import Job
from pumice.plugins.arguments import ArgumentSpec, Parsed, parse
from pumice.plugins.interface import JobPlugin
from pumice.plugins.registry import Registry
from pumice.plugins.settings import DEFAULT, PluginSettings
from pumice.plugins.upstream_arguments import parse_upstream

__all__ = ["Applied", "applied", "read_arguments"]


@dataclass(frozen=True, slots=True)
class Applied:
    """A plugin of a Job.

    Attributes:
        plugin: The plugin.
        parsed: Its arguments in this Job.
    """

    plugin: JobPlugin
    parsed: Parsed


def applied(
    job: Job,
    registry: Registry,
    *,
    strict_upstream: bool = False,
    settings: PluginSettings = DEFAULT,
) -> tuple[Applied, ...]:
    """The Job's plugins in the order in which they are applied; names without a plugin are left out."""
    plugins = job.spec.plugins or {}
    return tuple(
        Applied(
            plugin,
            read_arguments(
                plugin.arguments,
                plugins[plugin.name],
                strict_upstream=strict_upstream,
                settings=settings,
            ),
        )
        for plugin in registry.plugins
        if plugin.name in plugins
    )


def read_arguments(
    spec: ArgumentSpec,
    vector: Sequence[str] | None,
    *,
    strict_upstream: bool,
    settings: PluginSettings = DEFAULT,
) -> Parsed:
    """Read a plugin's words by Pumice's rule or by Volcano's."""
    read = parse_upstream if strict_upstream else parse
    parsed = read(spec, vector or ())
    if settings is DEFAULT:
        return parsed
    return replace(parsed, values=replace(parsed.values, settings=settings))
