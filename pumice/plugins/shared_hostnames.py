"""Tasks whose pods share one hostname although a plugin must address single pods.

All pods of such a task have one address, and the name resolves to any of them. This works for a service, but not for
ranks.
"""

from collections.abc import Collection

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.plugins.addresses import fixed_hostname
from pumice.plugins.used_names import used_names

__all__ = ["shared_hostname_errors"]


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
