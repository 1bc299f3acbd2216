"""Pod templates of a Job: each task's, judged by the rooms of `templates`."""

from pumice.api.jobs import Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.site import Site

__all__ = ["pod_templates"]


def pod_templates(case: Case, job: Job) -> None:
    """Check the pod template of every task."""
    for index, task in enumerate(job.tasks):
        pod_template(Site(case, f"spec.tasks[{index}].template"), task.template or {})
