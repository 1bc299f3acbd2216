"""Limits of what plugins write into a pod, given by what an API server can store.

etcd takes requests of 1.5 MiB. A variable of every container counts once for each container, so a variable that is
valid for a program may be too large for a pod.
"""

from collections.abc import Collection
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.jobs import Job, Task

__all__ = ["POD_LIMIT", "pod_size_errors"]

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
