"""How many pods a Job has and how many it needs: numbers that fit each other.

Totals are plain integers of any size; nothing overflows.
"""

from pumice.api.jobs import Job, Task
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["JOB_MINAVAIL_TOTAL", "JOB_NO_TASKS", "RULES", "counts", "task_list"]

JOB_NO_TASKS = Rule(
    "JOB-NO-TASKS",
    "a Job has tasks",
    "Without tasks there are no pods to run.",
    "tasks: []",
    reason="FieldValueRequired",
)
JOB_NEGATIVE = Rule(
    "JOB-NEGATIVE",
    "counts and durations are not negative",
    "There is no pod fewer than none.",
    "tasks: [{name: worker, replicas: -1}]",
)
JOB_TASK_MINAVAIL = Rule(
    "JOB-TASK-MINAVAIL",
    "minAvailable of a task is at most its replicas",
    "The gang would wait for pods that nobody creates.",
    "tasks: [{name: worker, replicas: 2, minAvailable: 3}]",
    compares=True,
)
JOB_MINAVAIL_TOTAL = Rule(
    "JOB-MINAVAIL-TOTAL",
    "minAvailable of a Job is at most the replicas of all its tasks",
    "The gang would wait for pods that nobody creates.",
    "minAvailable: 5, tasks: [{name: worker, replicas: 4}]",
    compares=True,
)
JOB_MINAVAIL_SUM = Rule(
    "JOB-MINAVAIL-SUM",
    "minAvailable of a Job is the sum of its tasks' minAvailable",
    "Otherwise the Job starts when some of its tasks are not complete, or waits though all are.",
    "minAvailable: 2, tasks: [{name: worker, replicas: 4, minAvailable: 4}]",
    level="warn",
    compares=True,
)
JOB_REPLICAS = Rule(
    "JOB-REPLICAS",
    "a task says how many pods it has",
    "A task without replicas has no pods.",
    "tasks: [{name: worker, template: …}]",
    reason="FieldValueRequired",
    level="warn",
)
JOB_MIN_SUCCESS = Rule(
    "JOB-MIN-SUCCESS",
    "minSuccess is at most the replicas of all tasks",
    "The Job could never reach it.",
    "minSuccess: 9, tasks: [{name: worker, replicas: 4}]",
    level="warn",
    compares=True,
)

RULES = (
    JOB_NO_TASKS,
    JOB_NEGATIVE,
    JOB_TASK_MINAVAIL,
    JOB_MINAVAIL_TOTAL,
    JOB_MINAVAIL_SUM,
    JOB_REPLICAS,
    JOB_MIN_SUCCESS,
)


def task_list(case: Case, job: Job) -> None:
    """Check that there are tasks."""
    if not job.spec.tasks:
        case.report(JOB_NO_TASKS, "spec.tasks", "must have at least one task, found none")


def counts(case: Case, job: Job) -> None:
    """Check the numbers of the Job and of its tasks."""
    spec = job.spec
    total = least = 0
    for index, task in enumerate(job.tasks):
        replicas, minimum = task.replicas or 0, task.minimum
        total += replicas
        least += minimum
        if replicas <= 0 or minimum > replicas or minimum < 0 or (task.max_retry or 0) < 0:
            _doubtful(case, task, f"spec.tasks[{index}]")
    for name, value in (
        ("minAvailable", spec.min_available),
        ("maxRetry", spec.max_retry),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
    ):
        if value is not None and value < 0:
            case.report(JOB_NEGATIVE, f"spec.{name}", f"must be 0 or more, found {value}")
    if not job.tasks:
        return
    minimum = spec.min_available or 0
    if minimum > total:
        message = f"must be at most {total}, the replicas of all tasks, found {minimum}"
        case.report(JOB_MINAVAIL_TOTAL, "spec.minAvailable", message)
    elif minimum > 0 and minimum != least:
        message = f"is {minimum}, while the tasks' minAvailable add up to {least}"
        case.report(JOB_MINAVAIL_SUM, "spec.minAvailable", message)
    if spec.min_success is not None and spec.min_success > total:
        message = f"cannot be reached: {spec.min_success} of {total} pods"
        case.report(JOB_MIN_SUCCESS, "spec.minSuccess", message)


def _doubtful(case: Case, task: Task, path: str) -> None:
    """Say what is wrong with the numbers of a task that has something wrong with them."""
    for name, value in (
        ("replicas", task.replicas),
        ("minAvailable", task.min_available),
        ("maxRetry", task.max_retry),
    ):
        if value is not None and value < 0:
            case.report(JOB_NEGATIVE, f"{path}.{name}", f"must be 0 or more, found {value}")
    if task.min_available is not None and task.min_available > max(task.size, 0):
        message = f"must be at most replicas ({task.size}), found {task.min_available}"
        case.report(JOB_TASK_MINAVAIL, f"{path}.minAvailable", message)
    if task.replicas is None:
        case.report(JOB_REPLICAS, f"{path}.replicas", "is not set, so the task has no pods")
    elif task.replicas == 0:
        case.report(JOB_REPLICAS, f"{path}.replicas", "is 0, so the task has no pods")
