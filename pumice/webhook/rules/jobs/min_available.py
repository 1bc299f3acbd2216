"""The number of pods that a Job has and needs: `replicas`, `minAvailable`, `minSuccess`, `maxRetry`.

Sums are Python integers, so nothing overflows here. Values that would overflow the API's 32-bit counts are reported.
"""

from pumice.api.jobs import Job, Task
from pumice.api.meta import MAX_INT32
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule, stricter, warned

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
    "A negative count has no meaning.",
    "tasks: [{name: worker, replicas: -1}]",
)
JOB_OVERFLOW = Rule(
    "JOB-OVERFLOW",
    "counts fit into 32 bits, and so do the replicas of all tasks together",
    "The API has no larger numbers; they would overflow into negative ones.",
    "tasks: [{name: a, replicas: 2000000000}, {name: b, replicas: 2000000000}]",
)
JOB_TOO_MANY_PODS = stricter(
    "JOB-TOO-MANY-PODS",
    "the tasks of a Job ask for no more pods than the setting `max-pods-per-job`",
    "The controller makes no pods of such a Job; usually a digit was typed twice.",
    "tasks: [{name: worker, replicas: 2000000000}]",
)
JOB_TASK_MINAVAIL = Rule(
    "JOB-TASK-MINAVAIL",
    "minAvailable of a task is at most its replicas",
    "The gang would wait for pods that are never created.",
    "tasks: [{name: worker, replicas: 2, minAvailable: 3}]",
    compares=True,
)
JOB_MINAVAIL_TOTAL = Rule(
    "JOB-MINAVAIL-TOTAL",
    "minAvailable of a Job is at most the replicas of all its tasks",
    "The gang would wait for pods that are never created.",
    "minAvailable: 5, tasks: [{name: worker, replicas: 4}]",
    compares=True,
)
JOB_MINAVAIL_SUM = warned(
    "JOB-MINAVAIL-SUM",
    "minAvailable of a Job is the sum of its tasks' minAvailable, if one of these is not the task's replicas",
    "If it is less, the minAvailable of the tasks has no effect; if it is more, the Job waits for pods that no task needs.",
    "minAvailable: 2, tasks: [{name: worker, replicas: 4, minAvailable: 3}]",
    compares=True,
)
JOB_REPLICAS = warned(
    "JOB-REPLICAS",
    "a task says how many pods it has",
    "A task without replicas has no pods.",
    "tasks: [{name: worker, template: …}]",
    reason="FieldValueRequired",
)
JOB_MIN_SUCCESS = warned(
    "JOB-MIN-SUCCESS",
    "minSuccess is at most the replicas of all tasks",
    "The Job could never succeed.",
    "minSuccess: 9, tasks: [{name: worker, replicas: 4}]",
    compares=True,
)


def task_list(case: Case, job: Job) -> None:
    """Check that there are tasks."""
    if not job.spec.tasks:
        case.report(JOB_NO_TASKS, "spec.tasks", "No task specified in job spec; write at least one")


def counts(case: Case, job: Job) -> None:
    """Check the numbers of the Job and of its tasks."""
    spec = job.spec
    total = least = 0
    has_minimum = False
    for index, task in enumerate(job.tasks):
        replicas, minimum = task.replicas or 0, task.minimum
        total += replicas
        least += minimum
        has_minimum = has_minimum or minimum != replicas
        if (
            not 0 < replicas <= MAX_INT32
            or not 0 <= minimum <= replicas
            or not 0 <= (task.max_retry or 0) <= MAX_INT32
        ):
            _doubtful(case, task, f"spec.tasks[{index}]")
    bounds(case, "spec.minAvailable", spec.min_available)
    bounds(case, "spec.maxRetry", spec.max_retry)
    bounds(case, "spec.ttlSecondsAfterFinished", spec.ttl_seconds_after_finished)
    bounds(case, "spec.minSuccess", spec.min_success)
    if job.tasks:
        _totals(case, job, total, least, has_minimum=has_minimum)


def _totals(case: Case, job: Job, total: int, least: int, *, has_minimum: bool) -> None:
    if total > MAX_INT32 >= max(task.size for task in job.tasks):
        message = f"must have at most {MAX_INT32} replicas together, found {total}"
        case.report(JOB_OVERFLOW, "spec.tasks", message, excess=total)
    elif MAX_INT32 >= total > (most := case.settings.max_pods_per_job):
        message = f"must ask for at most {most} pods together (max-pods-per-job), found {total}"
        case.report(JOB_TOO_MANY_PODS, "spec.tasks", message, excess=total)
    minimum, success = job.spec.min_available or 0, job.spec.min_success or 0
    if minimum > total:
        verb = "should" if case.creating else "must"
        message = f"job 'minAvailable' {verb} not be greater than total replicas ({total}), found {minimum}"
        case.report(JOB_MINAVAIL_TOTAL, "spec.minAvailable", message, excess=minimum - total)
    elif has_minimum and minimum > 0 and least <= MAX_INT32 and minimum != least:
        message = f"is {minimum}, while the tasks' minAvailable add up to {least}; set it to {least} or leave it out"
        excess = abs(minimum - least)
        case.report(JOB_MINAVAIL_SUM, "spec.minAvailable", message, excess=excess)
    if success > max(total, 0):
        message = f"cannot be reached: it is greater than the replicas of all tasks ({total}), found {success}"
        case.report(JOB_MIN_SUCCESS, "spec.minSuccess", message, excess=success - max(total, 0))


def bounds(case: Case, path: str, value: int | None) -> None:
    """Check that a count, if it is there, is not negative and fits into 32 bits."""
    if value is None:
        return
    if value < 0:
        message = f"{_negative(case, path)}, found {value}"
        case.report(JOB_NEGATIVE, path, message, excess=-value)
    elif value > MAX_INT32:
        message = f"must be at most {MAX_INT32}, found {value}"
        case.report(JOB_OVERFLOW, path, message, excess=value)


def _negative(case: Case, path: str) -> str:
    """The problem of a negative count. Volcano's words for updates and for counts of tasks differ."""
    parent, _, field = path.rpartition(".")
    if field in ("replicas", "minAvailable") and not case.creating:
        return f"'{field}' must be >= 0" + ("" if parent == "spec" else " in task")
    if field in ("replicas", "minAvailable") and parent != "spec":
        return f"'{field}' < 0 in task"
    return f"'{field}' cannot be less than zero"


def _doubtful(case: Case, task: Task, path: str) -> None:
    """Warn about the counts of a task."""
    bounds(case, f"{path}.replicas", task.replicas)
    bounds(case, f"{path}.minAvailable", task.min_available)
    bounds(case, f"{path}.maxRetry", task.max_retry)
    minimum, most = task.min_available or 0, max(task.size, 0)
    if minimum > most:
        phrase = "is greater than" if case.creating else "must be <="
        message = f"'minAvailable' {phrase} 'replicas' in task ({task.size}), found {minimum}"
        parts = task.partition_policy
        if parts is not None and minimum == parts.min_partitions * parts.partition_size:
            message += f", which is minPartitions {parts.min_partitions} * partitionSize {parts.partition_size}"
        case.report(JOB_TASK_MINAVAIL, f"{path}.minAvailable", message, excess=minimum - most)
    if task.replicas is None:
        case.report(JOB_REPLICAS, f"{path}.replicas", "is not set, so the task has no pods")
    elif task.replicas == 0:
        case.report(JOB_REPLICAS, f"{path}.replicas", "is 0, so the task has no pods")
