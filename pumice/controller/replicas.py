"""Which pods are missing and which are too many.

The pods of a task are numbered from 0, so a Job that grows gets the next numbers and one that shrinks
loses the highest. A pod that is removed because it is too many is marked first: whoever sees it go, a
policy for evicted pods above all, can tell that nothing went wrong.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.kinds import POD
from pumice.api.names import pod_name
from pumice.api.pods import Pod
from pumice.controller.plan import DeleteObject, UpdateObject

__all__ = ["Missing", "leaving", "mark", "missing", "removals"]


@dataclass(frozen=True, slots=True)
class Missing:
    """A pod that should exist and does not.

    Attributes:
        task: Its task.
        index: Its number.
        name: Its name.
    """

    task: Task
    index: int
    name: str


def missing(
    job: Job, pods: Iterable[Pod], lost: Collection[str] = frozenset()
) -> Iterator[Missing]:
    """Pods that are wanted and not there; one that is still being removed is there.

    Args:
        job: The Job.
        pods: Its pods.
        lost: Names of pods that succeeded and exist no longer; they are not wanted any more.
    """
    present = {pod.metadata.name for pod in pods}
    for task in job.tasks:
        for index in range(task.size):
            name = pod_name(job.metadata.name, task.name, index)
            if name not in present and name not in lost:
                yield Missing(task, index, name)


def leaving(job: Job, pods: Collection[Pod]) -> list[Pod]:
    """Pods that must go, the highest number of a task first.

    They are those that the Job no longer wants, and those that were marked for removal by a
    controller that did not get any further.

    Args:
        job: The Job.
        pods: Its pods, in the order of tasks and numbers.
    """
    wanted = {
        pod_name(job.metadata.name, task.name, index)
        for task in job.tasks
        for index in range(task.size)
    }
    return [
        pod
        for pod in reversed(list(pods))
        if pod.metadata.deletion_timestamp is None
        and (pod.metadata.name not in wanted or pod.metadata.annotation(keys.OUT_OF_SYNC))
    ]


def mark(pods: Iterable[Pod]) -> list[UpdateObject]:
    """Mark pods as removed by the controller, where they are not marked yet."""
    return [
        UpdateObject(
            POD,
            pod.metadata.namespace,
            pod.metadata.name,
            {"metadata": {"uid": pod.metadata.uid, "annotations": {keys.OUT_OF_SYNC: "true"}}},
        )
        for pod in pods
        if not pod.metadata.annotation(keys.OUT_OF_SYNC)
    ]


def removals(pods: Iterable[Pod]) -> list[DeleteObject]:
    """Delete pods, where they are not on their way already."""
    return [
        DeleteObject(POD, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        for pod in pods
        if pod.metadata.deletion_timestamp is None
    ]
