"""Names of the Job and of its tasks, and the names derived from them.

Pods are named `<job>-<task>-<index>`, and a pod's name becomes its host name, so the longest one must have 63
characters at most. Their labels carry the names of Job, task, namespace and queue. Names of PodGroups (`<job>-<uid>`)
and of claims have 253 characters, which nothing here reaches. Names of plugins' objects are checked with the plugins
(`job_plugins`, `job_derived_names`).

Names that the API server refuses before it calls a webhook, such as names with capitals, are checked only as qualified
names, as in Volcano.
"""

from pumice.api.fields import Reason
from pumice.api.jobs import Job
from pumice.api.meta import ObjectMeta
from pumice.api.names import (
    LABEL_LENGTH,
    dns_label_problem,
    label_value_problem,
    pod_name,
    qualified_name_problem,
)
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule, stricter

JOB_NAME = Rule(
    "JOB-NAME",
    "a Job's name fits into a label",
    "Every pod has its Job's name as a label; a label has at most 63 characters.",
    "metadata: {name: a-name-of-more-than-sixty-three-characters-…}",
)
JOB_TASK_NAME = Rule(
    "JOB-TASK-NAME",
    "a task's name is a DNS label",
    "It is a part of its pods' names and a label's value.",
    "tasks: [{name: My_Worker}]",
)
JOB_DUP_TASK = Rule(
    "JOB-DUP-TASK",
    "no two tasks of a Job have the same name",
    "Their pods would have the same names.",
    "tasks: [{name: worker}, {name: worker}]",
    reason="FieldValueDuplicate",
)
JOB_PODNAME = Rule(
    "JOB-PODNAME",
    "the names of a task's pods have at most 63 characters",
    "A pod's name becomes its host name; `<job>-<task>-<index>` must fit.",
    "metadata: {name: a-rather-long-name-…}, tasks: [{name: one-more-long-name-…, replicas: 1000}]",
    reason="FieldValueTooLong",
    compares=True,
)
JOB_PODNAME_INDEX = stricter(
    "JOB-PODNAME-INDEX",
    "the name of the task's last pod fits too",
    "Volcano looks at the task's position instead of the highest index. With plugin svc the last pods then "
    "cannot be created; without it their host names are cut off and may be the same.",
    "a task of 1000 replicas whose pod names have 62 characters and a one-digit index",
    reason="FieldValueTooLong",
    compares=True,
)

JOB_LABEL = stricter(
    "JOB-LABEL",
    "the name of a Job's queue fits into a label",
    "Every pod has its queue's name as a label; Kubernetes refuses a label of more than 63 characters.",
    "queue: a-name-of-more-than-sixty-three-characters-…",
    reason="FieldValueTooLong",
)

_GENERATED_SUFFIX = "xxxxx"
"""Placeholder for the five characters that the API server appends to `generateName`."""

_LONGEST_STEM = 58
"""Characters of `generateName` that the API server keeps, so that generated names have at most 63 characters."""


def expected_name(meta: ObjectMeta) -> str:
    """The name, or one as long as the API server will generate."""
    if meta.name or not meta.generate_name:
        return meta.name
    return meta.generate_name[:_LONGEST_STEM] + _GENERATED_SUFFIX


def names(case: Case, job: Job) -> None:
    """Check the Job's name, its tasks' names, its pods' names and its pods' labels."""
    name = expected_name(job.metadata)
    bad: str | None = f"found '/' in \"{name}\"" if "/" in name else qualified_name_problem(name)
    if bad:
        wrong = "must be set, or generateName"
        if name:
            wrong = f"a job name must be a valid qualified name without '/': {bad}"
        message = f'create job with name "{name}" validate failed: {wrong}'
        case.report(JOB_NAME, "metadata.name", message, _length(name))
    queue = job.spec.queue
    if len(queue) > LABEL_LENGTH and (problem := label_value_problem(queue)):
        message = f"becomes a label of every pod: {problem}"
        case.report(JOB_LABEL, "spec.queue", message)
    seen: dict[str, int] = {}
    for index, task in enumerate(job.tasks):
        first = seen.setdefault(task.name, index)
        if problem := dns_label_problem(task.name) if task.name else "must not be empty":
            case.report(JOB_TASK_NAME, f"spec.tasks[{index}].name", problem, _length(task.name))
        elif first != index:
            message = f'duplicated task name "{task.name}", already used by spec.tasks[{first}]'
            case.report(JOB_DUP_TASK, f"spec.tasks[{index}].name", message)
        elif not bad and len(f"{name}-{task.name}-{task.replicas}") > LABEL_LENGTH:
            _last_pod(case, name, task.name, index, task.size)


def _length(name: str) -> Reason | None:
    """Kubernetes' class of a name's problem, if the problem is its length."""
    return "FieldValueTooLong" if len(name) > LABEL_LENGTH else None


def _last_pod(case: Case, job: str, task: str, position: int, replicas: int) -> None:
    name = pod_name(job, task, max(replicas - 1, 0))
    if len(name) <= LABEL_LENGTH:  # if the names are valid, only the length can be wrong
        return
    also_upstream = qualified_name_problem(pod_name(job, task, position)) is not None
    message = (
        f'create pod with name "{name}" validate failed: the name of the last pod must be at most '
        f"{LABEL_LENGTH} characters, found {len(name)}; shorten the name of the Job or of the task"
    )
    rule = JOB_PODNAME if also_upstream else JOB_PODNAME_INDEX
    case.report(rule, f"spec.tasks[{position}].name", message, excess=len(name))
