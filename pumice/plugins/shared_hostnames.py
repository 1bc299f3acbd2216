"""Tasks whose template gives one hostname to several pods, where a plugin has to tell the pods apart.

All pods of such a task have one address, and a name that resolves to any of them: fine for a service that each of them renders, useless for a rank.
"""

from collections.abc import Collection

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.plugins.addresses import fixed_hostname
from pumice.plugins.taken import taken

__all__ = ["shared_hostname_errors"]


def shared_hostname_errors(job: Job, plugin: str, tasks: Collection[str]) -> list[FieldError]:
    """Refuse each task of which a plugin gives others the addresses of single pods, where those share one.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        tasks: Names of the tasks whose addresses it uses.
    """
    if not taken(job).addresses:
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
