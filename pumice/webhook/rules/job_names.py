"""Names: of the Job, of its tasks, and of the pods that will be made of them."""

from pumice.api.jobs import Job
from pumice.api.meta import ObjectMeta
from pumice.api.names import dns_label_problem, pod_name, qualified_name_problem
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["JOB_NAME", "RULES", "expected_name", "names"]

JOB_NAME = Rule(
    "JOB-NAME",
    "a Job's name fits into a label",
    "Every pod carries its Job's name as a label; 63 characters are the limit.",
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
    compares=True,
)
JOB_PODNAME = Rule(
    "JOB-PODNAME",
    "the names of a task's pods have at most 63 characters",
    "A pod's name becomes its host name; `<job>-<task>-<index>` must fit.",
    "metadata: {name: a-rather-long-name-…}, tasks: [{name: one-more-long-name-…, replicas: 1000}]",
    compares=True,
)
JOB_PODNAME_INDEX = Rule(
    "JOB-PODNAME-INDEX",
    "the name of the task's last pod fits too",
    "Volcano looks at the task's position instead of the highest index; the last pods then fail.",
    "a task of 1000 replicas whose pod names have 62 characters and a one-digit index",
    stricter=True,
    compares=True,
)

RULES = (JOB_NAME, JOB_TASK_NAME, JOB_DUP_TASK, JOB_PODNAME, JOB_PODNAME_INDEX)

_GENERATED_SUFFIX = "xxxxx"
"""Stands for the five characters that the API server appends to `generateName`."""


def expected_name(meta: ObjectMeta) -> str:
    """The name, or one as long as the API server will generate."""
    if meta.name or not meta.generate_name:
        return meta.name
    return meta.generate_name + _GENERATED_SUFFIX


def names(case: Case, job: Job) -> None:
    """Check the Job's name, its tasks' names and its pods' names."""
    name = expected_name(job.metadata)
    bad = (
        qualified_name_problem(name) if "/" not in name else f"must not contain '/', found {name!r}"
    )
    if bad:
        case.report(JOB_NAME, "metadata.name", bad)
    seen: dict[str, int] = {}
    for index, task in enumerate(job.tasks):
        first = seen.setdefault(task.name, index)
        if problem := dns_label_problem(task.name) if task.name else "must not be empty":
            case.report(JOB_TASK_NAME, f"spec.tasks[{index}].name", problem)
        elif first != index:
            message = f'"{task.name}" is already the name of spec.tasks[{first}]'
            case.report(JOB_DUP_TASK, f"spec.tasks[{index}].name", message)
        elif not bad:
            _last_pod(case, name, task.name, index, task.size)


def _last_pod(case: Case, job: str, task: str, position: int, replicas: int) -> None:
    """Check the longest name of a task's pods."""
    name = pod_name(job, task, max(replicas - 1, 0))
    problem = qualified_name_problem(name)
    if problem is None:
        return
    also_upstream = qualified_name_problem(pod_name(job, task, position)) is not None
    message = f'its last pod would be named "{name}", which {problem}'
    rule = JOB_PODNAME if also_upstream else JOB_PODNAME_INDEX
    case.report(rule, f"spec.tasks[{position}].name", message)
