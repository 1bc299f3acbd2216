"""`minResources`: the resource requests of the minimum set of pods that a Job needs.

The scheduler does not try a gang for which a queue or the cluster has less than this. The set of pods follows from
priority: tasks are taken in the order of their PriorityClass, and in the order of the spec if priorities are equal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pumice.api.jobs import Job, Task
from pumice.api.pods import PodSpec
from pumice.api.quantities import QuantityError, format_milli
from pumice.api.requests import Amounts, add, quota_usage
from pumice.controller.jobs.subject import UnusableError

__all__ = ["by_minimum", "by_priority", "by_walk", "min_resources", "needed_pods"]


def min_resources(
    job: Job, tasks: Sequence[Task], minimum: int, priorities: Mapping[str, int]
) -> dict[str, str]:
    """Resources of the `minimum` most important pods, as quantities by name.

    Args:
        job: The Job.
        tasks: Those of its tasks that count now.
        minimum: Pods that are needed over these tasks.
        priorities: PriorityClass values by name; an unknown class counts as 0.

    Raises:
        UnusableError: A pod template requests a value that is not a quantity.
    """
    total: Amounts = {}
    for task, count in needed_pods(by_priority(tasks, priorities), minimum):
        if count:
            add(total, _usage(job, task), count)
    return {name: format_milli(total[name]) for name in sorted(total)}


def by_priority(tasks: Sequence[Task], priorities: Mapping[str, int]) -> list[Task]:
    """Tasks by the value of their template's PriorityClass, highest first, otherwise as given."""
    return sorted(
        tasks, key=lambda task: -priorities.get(str(task.pod_spec().get("priorityClassName")), 0)
    )


def needed_pods(tasks: Sequence[Task], minimum: int) -> list[tuple[Task, int]]:
    """How many pods of each task are among the `minimum` needed ones."""
    if minimum < sum(task.minimum for task in tasks):
        return by_walk(tasks, minimum)
    return by_minimum(tasks, minimum)


def by_walk(tasks: Sequence[Task], minimum: int) -> list[tuple[Task, int]]:
    """Take all replicas, task by task, until the minimum is reached."""
    taken: list[tuple[Task, int]] = []
    for task in tasks:
        count = min(task.size, minimum)
        minimum -= count
        taken.append((task, count))
    return taken


def by_minimum(tasks: Sequence[Task], minimum: int) -> list[tuple[Task, int]]:
    """Take each task's own minimum first, then fill up from what is left, task by task.

    A minimum of 0 for the Job stands for the sum of the tasks' minimums.
    """
    left = minimum or sum(task.minimum for task in tasks)
    taken: list[int] = []
    for task in tasks:
        count = min(task.minimum, left)
        left -= count
        taken.append(count)
    for position, task in enumerate(tasks):
        more = min(task.size - taken[position], left)
        left -= more
        taken[position] += more
    return list(zip(tasks, taken, strict=True))


def _usage(job: Job, task: Task) -> Amounts:
    try:
        return quota_usage(msgspec.convert(_stated(task.pod_spec()), PodSpec))
    except (QuantityError, msgspec.ValidationError, RecursionError) as error:
        position = next(at for at, each in enumerate(job.tasks) if each.name == task.name)
        raise UnusableError(
            f"spec.tasks[{position}].template.spec cannot be read: {error}"
        ) from error


def _stated(value: Any) -> Any:
    """JSON without nulls, which an API server treats as absent in pods."""
    if isinstance(value, dict):
        return {key: _stated(each) for key, each in value.items() if each is not None}
    return [_stated(each) for each in value] if isinstance(value, list) else value
