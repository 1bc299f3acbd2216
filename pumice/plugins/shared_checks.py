"""Checks of Jobs that several plugins need.

Size: etcd takes requests of 1.5 MiB. A variable of every container counts once for each container, so a variable that is
valid for a program may be too large for a pod.

Hostnames: if the pods of a task share one hostname, they have one address, and the name resolves to any of them. This works
for a service, but not for ranks.

Variables that both a template and a plugin set: the template's value is kept. In Volcano the plugin's second entry takes
effect in the running container, so a warning is given for users who rely on it.
"""

from collections.abc import Collection
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.jobs import Job, Task
from pumice.api.raw import list_in, text_in
from pumice.plugins.addresses import fixed_hostname
from pumice.plugins.arguments import Values
from pumice.plugins.used_names import used_names

POD_LIMIT = 1_400_000
"""Maximum number of bytes of a plugin's variables in all containers of a pod; the rest is for the template."""

_FEW = 10_000
"""Number of bytes of variables that fit with any number of containers."""


def pod_size_errors(
    job: Job, plugin: str, size: int, *, tasks: Collection[str] | None = None
) -> list[FieldError]:
    """Refuse tasks whose pods would get more variables than can be stored.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        size: Bytes of its variables in each container.
        tasks: Tasks whose containers get them; None for all.
    """
    if size <= _FEW:
        return []
    return [
        FieldError(
            f"spec.tasks[{position}].template.spec.containers",
            f"plugin {plugin} would write {size} bytes of variables into each of {count} containers, and a pod "
            f"has room for {POD_LIMIT}; use fewer containers, fewer pods or shorter names",
            "JOB-PLUGIN-SIZE",
        )
        for position, task in enumerate(job.tasks)
        if (tasks is None or task.name in tasks) and size * (count := _containers(task)) > POD_LIMIT
    ]


def _containers(task: Task) -> int:
    spec: dict[str, Any] = task.pod_spec()
    found = (spec.get(key) for key in ("containers", "initContainers"))
    return sum(len(each) for each in found if isinstance(each, list))


def shared_hostname_errors(job: Job, plugin: str, tasks: Collection[str]) -> list[FieldError]:
    """Refuse tasks whose pods share one hostname if a plugin uses addresses of single pods.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        tasks: Names of the tasks whose addresses it uses.
    """
    if not used_names(job).addresses:
        return []
    return [
        FieldError(
            f"spec.tasks[{position}].template.spec.hostname",
            f'"{fixed_hostname(task)}" becomes the host name of all pods of task {task.name}, and plugin {plugin} '
            "needs the address of a single pod; leave it out, so that each pod has its own host name",
            "JOB-PLUGIN-HOSTNAME",
        )
        for position, task in enumerate(job.tasks)
        if task.size > 1 and task.name in tasks and fixed_hostname(task)
    ]


def kept_warnings(
    job: Job, values: Values, names: Collection[str], *, tasks: Collection[str] | None = None
) -> list[FieldError]:
    """Warn about each place where a template sets a plugin's variable.

    Args:
        job: The Job.
        values: Arguments of the plugin; with `strict_upstream` no template value is kept.
        names: Variables of the plugin.
        tasks: Tasks in which it sets them; None for all.
    """
    if values.strict_upstream:
        return []
    if not used_names(job).may_set(names):
        return []
    wanted = frozenset(names)
    return [
        FieldError(
            f"spec.tasks[{position}].template.spec.{place}",
            f"{name} is set here and kept; leave it out to get the generated value",
            "JOB-PLUGIN-KEPT",
        )
        for position, task in enumerate(job.tasks)
        if tasks is None or task.name in tasks
        for place, name in _set(task.pod_spec(), wanted)
    ]


def _set(spec: dict[str, object], names: frozenset[str]) -> list[tuple[str, str]]:
    """Paths at which a pod's containers set one of the names, with the name."""
    found: list[tuple[str, str]] = []
    for key in ("containers", "initContainers"):
        for number, container in enumerate(list_in(spec, key)):
            for entry, variable in enumerate(list_in(container, "env")):
                if (name := text_in(variable, "name")) in names:
                    found.append((f"{key}[{number}].env[{entry}]", name))
    return found
