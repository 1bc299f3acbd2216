"""The Job as the controller uses it: decoded, complete, and checked.

Admission refuses Jobs that cannot work, but it can be off, or installed after a Job was created. So a Job is checked
here, and a problem is reported in its status.
"""

import msgspec

from pumice.api.jobs import DEFAULT_MAX_PODS, Job, Task
from pumice.api.meta import Raw
from pumice.api.names import default_task_name

DEFAULT_MAX_RETRY = 3
"""`spec.maxRetry` when the Job does not say; admission writes the same."""


class UnusableError(ValueError):
    """A Job from which no pods can be made; the message says what is wrong and where."""


def read(raw: Raw, max_pods: int = DEFAULT_MAX_PODS) -> Job:
    """Decode a Job and apply the defaults of admission.

    Raises:
        UnusableError: Something is missing or of the wrong type.
    """
    try:
        job = msgspec.convert(raw, Job)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UnusableError(f"the Job cannot be read: {error}") from error
    if not job.tasks:
        raise UnusableError("spec.tasks is empty: a Job needs at least one task")
    for position, task in enumerate(job.tasks):
        if task.size < 0:
            raise UnusableError(
                f"spec.tasks[{position}].replicas: expected at least 0, found {task.size}"
            )
    if job.replicas > max_pods:
        raise UnusableError(
            f"spec.tasks: the tasks ask for {job.replicas} pods, expected at most {max_pods}"
            " (max-pods-per-job); lower their replicas"
        )
    tasks = [_named(task, position) for position, task in enumerate(job.tasks)]
    seen: dict[str, int] = {}
    for position, task in enumerate(tasks):
        if task.name in seen:
            raise UnusableError(
                f"spec.tasks[{position}].name: {task.name!r} is the name of"
                f" spec.tasks[{seen[task.name]}] already; task names must differ"
            )
        seen[task.name] = position
        _check_template(task, position)
    replace = msgspec.structs.replace
    return replace(job, spec=replace(job.spec, tasks=tasks))


def min_available(job: Job) -> int:
    """Pods that must be schedulable together: `minAvailable` of the Job, or the sum over the tasks."""
    stated = job.spec.min_available
    return sum(task.minimum for task in job.tasks) if stated is None else stated


def _named(task: Task, position: int) -> Task:
    if task.name:
        return task
    return msgspec.structs.replace(task, name=default_task_name(position))


def _check_template(task: Task, position: int) -> None:
    path = f"spec.tasks[{position}].template.spec.containers"
    containers = task.pod_spec().get("containers")
    if not isinstance(containers, list) or not containers:
        raise UnusableError(f"{path} is empty: a pod needs at least one container")
    for key in ("containers", "initContainers", "volumes"):
        for at, each in enumerate(task.pod_spec().get(key) or ()):
            if not isinstance(each, dict):
                raise UnusableError(
                    f"spec.tasks[{position}].template.spec.{key}[{at}] must be an object,"
                    f" found {type(each).__name__}"
                )
