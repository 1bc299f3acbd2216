"""A few plain Jobs, the same in every process: several sets of tasks, each under several names."""

from collections.abc import Iterator

import msgspec

from pumice.api.jobs import Job
from pumice.cli.contract.names import JOB_NAMES
from pumice.plugins import JobPlugin, builtin, dependencies

__all__ = ["samples"]

_TASKS = (["ps", "worker", "chief"], ["a", "b", "c", "d", "e"])


def samples(plugin: JobPlugin) -> Iterator[Job]:
    """Jobs of several tasks; those that the plugin's arguments name by default among them."""
    defaults = [each.default for each in plugin.arguments if isinstance(each.default, str)]
    plugins: dict[str, list[str]] = {plugin.name: []}
    plugins |= dependencies(plugins, builtin())
    for names in (defaults, *_TASKS):
        tasks = [{"name": name, "replicas": 2} for name in dict.fromkeys(names) if name]
        for job_name in JOB_NAMES:
            yield msgspec.convert(
                {
                    "metadata": {"name": job_name, "namespace": "default"},
                    "spec": {"plugins": plugins, "tasks": tasks},
                },
                Job,
            )
