"""Launch order inside a Job: `tasks[].dependsOn`.

A task that depends on others gets no pods before these are ready; pods that it has already are left alone. A task
counts as ready when enough of its pods have succeeded or run with all containers ready. The required number is its
`minAvailable`, or all of its pods if that is not set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.messages import listed
from pumice.api.pods import Pod

_LONGEST = 512
"""Bytes of the longest list of what one task waits for; the message of a Job has those of several tasks."""


@dataclass(frozen=True, slots=True)
class HeldTask:
    """A task that must wait.

    Attributes:
        task: Its name.
        message: What it waits for, for the user.
        started: Whether the task already has pods.
    """

    task: str
    message: str
    started: bool


def held_tasks(
    job: Job, pods: Sequence[Pod], lost: Mapping[str, int] | None = None
) -> tuple[HeldTask, ...]:
    """Tasks whose dependencies are not met and which get no further pods, in the order of the spec."""
    if not any(task.depends_on and task.depends_on.name for task in job.tasks):
        return ()
    by_task: dict[str, list[Pod]] = {task.name: [] for task in job.tasks}
    for pod in pods:
        by_task.setdefault(pod.metadata.annotation(keys.TASK_SPEC), []).append(pod)
    minimums = {task.name: task.minimum for task in job.tasks}
    ready = {name: ready_pods(of_task) for name, of_task in by_task.items()}
    for name, number in (lost or {}).items():
        ready[name] = ready.get(name, 0) + number
    found: list[HeldTask] = []
    for task in job.tasks:
        waits = _unready(task, minimums, ready)
        if waits:
            message = f"task {task.name} waits for {listed(waits, ' and ', _LONGEST)}"
            started = bool(by_task[task.name] or (lost or {}).get(task.name))
            found.append(HeldTask(task.name, message, started))
    return tuple(found)


def _unready(task: Task, minimums: Mapping[str, int], ready: Mapping[str, int]) -> list[str]:
    """What a task waits for, by the numbers of ready pods; empty when it may start."""
    names = list(dict.fromkeys((task.depends_on.name if task.depends_on else None) or ()))
    waits: list[str] = []
    for name in names:
        minimum = minimums.get(name)
        if minimum is None:
            waits.append(f"task {name}, which does not exist")
        elif ready[name] < minimum:
            waits.append(f"task {name} ({ready[name]} of {minimum} pods ready)")
    one_is_enough = task.depends_on is not None and task.depends_on.iteration == "any"
    if one_is_enough and len(names) > 1 and len(waits) < len(names):
        return []
    return waits


def ready_pods(pods: Sequence[Pod]) -> int:
    """Pods that have succeeded, or run with all reported containers ready."""
    return sum(_is_up(pod) for pod in pods if pod.metadata.deletion_timestamp is None)


def _is_up(pod: Pod) -> bool:
    if pod.status.phase == "Running":
        return all(status.ready for status in pod.status.container_statuses or ())
    return pod.status.phase == "Succeeded"
