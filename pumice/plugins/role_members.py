"""Which tasks of a Job play which roles: the master, the workers, the servers.

Frameworks number processes consecutively: all of the first role, then all of the second. A plugin names its roles in
that order with the task of each; `RoleMembers` gives the addresses of a role and the rank of a pod. A role is also the
name of the argument that names its task.
"""

from collections.abc import Mapping

from pumice.api.fields import FieldError, did_you_mean
from pumice.api.jobs import Job, Task
from pumice.plugins.addresses import address, addresses, fixed_hostname, joined_size
from pumice.plugins.arguments import Values


class RoleMembers:
    """The pods that have each role of a Job.

    Attributes:
        roles: Name of the task of each role, in the order of ranks.
    """

    def __init__(self, job: Job, roles: Mapping[str, str]) -> None:
        """Find the tasks.

        Args:
            job: The Job.
            roles: Role to task name, in the order of ranks. Of two roles with one task the first counts.
        """
        self._job = job
        self.roles = dict(roles)
        self._tasks: dict[str, Task] = {}
        self._role_of: dict[str, str] = {}
        self._first: dict[str, int] = {}
        ranks = 0
        for role, name in roles.items():
            task = job.task(name)
            if task is None or name in self._role_of:
                continue
            self._tasks[role] = task
            self._role_of[name] = role
            self._first[role] = ranks
            ranks += task.size
        self.size = ranks

    def __contains__(self, role: object) -> bool:
        """True if a task has a role."""
        return role in self._tasks

    def role(self, task: Task) -> str:
        """Role of a task; empty if it has none."""
        return self._role_of.get(task.name, "")

    def task(self, role: str) -> Task | None:
        """Task that has a role."""
        return self._tasks.get(role)

    def count(self, role: str) -> int:
        """Number of pods of a role; 0 if no task has it."""
        task = self._tasks.get(role)
        return task.size if task is not None else 0

    def address(self, role: str, index: int = 0) -> str:
        """Address of a pod of a role; empty if no task has it."""
        task = self._tasks.get(role)
        return address(self._job, task, index) if task is not None else ""

    def addresses(self, role: str) -> list[str]:
        """Addresses of all pods of a role."""
        task = self._tasks.get(role)
        return addresses(self._job, task) if task is not None else []

    def joined_size(self, role: str, more: int = 0) -> int:
        """Bytes of a role's addresses with commas, each longer by `more`, without computing them."""
        task = self._tasks.get(role)
        if task is None:
            return 0
        pods = 1 if fixed_hostname(task) else task.size
        return joined_size(self._job, task) + pods * more

    def own_address(self, task: Task, index: int) -> str:
        """Address of a pod of any role."""
        return address(self._job, task, index)

    def rank(self, task: Task, index: int) -> int | None:
        """Rank of a pod over all roles; None if it has no role."""
        role = self._role_of.get(task.name)
        return None if role is None else self._first[role] + index


def role_warnings(
    job: Job, plugin: str, values: Values, roles: tuple[str, ...]
) -> tuple[FieldError, ...]:
    """Warn about roles that an argument gives to a task which the Job does not have.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        values: Its arguments; those with the names of roles have names of tasks.
        roles: The roles.
    """
    tasks = [task.name for task in job.tasks]
    return tuple(
        FieldError(
            f"spec.plugins.{plugin}",
            f'--{role} names task "{values[role]}", which the Job does not have'
            + did_you_mean(values[role], tasks),
            "JOB-PLUGIN-ROLE",
        )
        for role in roles
        if role in values.given and values[role] not in tasks
    )


def single_warnings(job: Job, values: Values, role: str) -> tuple[FieldError, ...]:
    """Warn about a role with several pods if the other roles use only the address of its first pod."""
    return tuple(
        _of_size(
            position,
            f"the others know {task.name} 0 alone, so {task.size - 1} of {task.size} pods have no part in "
            "the computation; use 1",
        )
        for position, task in enumerate(job.tasks)
        if task.name == values[role] and task.size > 1
    )


def empty_warnings(job: Job, values: Values, role: str) -> tuple[FieldError, ...]:
    """Warn about a required role whose task has no pods."""
    return tuple(
        _of_size(
            position, f"is 0, but the computation does not start without a {task.name}; set it to 1"
        )
        for position, task in enumerate(job.tasks)
        if task.name == values[role] and not task.size
    )


def _of_size(position: int, message: str) -> FieldError:
    """A warning about the number of pods of a task."""
    return FieldError(f"spec.tasks[{position}].replicas", message, "JOB-PLUGIN-ROLE")


def missing_task(job: Job, plugin: str, values: Values, role: str) -> FieldError:
    """Refuse a Job without a task that a plugin requires."""
    wanted = values[role]
    hint = did_you_mean(wanted, [task.name for task in job.tasks])
    text = (
        f'{plugin} {role} task was not found: the Job has no task named "{wanted}"{hint}; rename a task, '
        f"or name the task with --{role}=<task>"
    )
    code = f"JOB-{plugin}-{role}".upper()
    return FieldError("spec.tasks", text, code, "FieldValueNotFound")
