"""Priority classes that a Job names: its own, and those of its pods."""

from pumice.api.jobs import Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.priority_classes import JOB_PRIORITY, priority_class

__all__ = ["job_priorities"]


def job_priorities(case: Case, job: Job) -> None:
    """Warn of priority classes that do not exist."""
    if job.spec.priority_class_name:
        priority_class(case, JOB_PRIORITY, "spec.priorityClassName", job.spec.priority_class_name)
    for index, task in enumerate(job.tasks):
        name = task.pod_spec().get("priorityClassName")
        if name and isinstance(name, str):
            path = f"spec.tasks[{index}].template.spec.priorityClassName"
            priority_class(case, JOB_PRIORITY, path, name)
