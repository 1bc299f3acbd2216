"""Schedulers of a Job's pods: the gang waits for pods that Pumice's scheduler does not place."""

from pumice.api.jobs import Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import warned

JOB_SCHEDULER = warned(
    "JOB-SCHEDULER",
    "no schedulerName of a Job names another scheduler",
    "The gang of the Job waits for its pods, and pods with another schedulerName are not placed with it.",
    "template: {spec: {schedulerName: default-scheduler}}",
)


def scheduler_names(case: Case, job: Job) -> None:
    """Check the scheduler of the Job and of every template that names one."""
    named: dict[str, object] = {"spec.schedulerName": job.spec.scheduler_name}
    for index, task in enumerate(job.tasks):
        path = f"spec.tasks[{index}].template.spec.schedulerName"
        named[path] = task.pod_spec().get("schedulerName")
    ours = case.settings.scheduler_names
    for path, name in named.items():
        if isinstance(name, str) and name and name not in ours:
            message = (
                f'scheduler "{name}" does not place pods together with their gang, '
                f"so the Job may wait for ever; remove it or write {' or '.join(ours)}"
            )
            case.report(JOB_SCHEDULER, path, message)
