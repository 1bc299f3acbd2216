"""Pod templates of a Job: each task's, judged by the rooms of `templates`."""

from pumice.api.jobs import Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.foreign_pods import volcano_template
from pumice.webhook.rules.templates.plain import without_plain
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.site import Site

__all__ = ["pod_templates"]


def pod_templates(case: Case, job: Job) -> None:
    """Check the pod template of every task."""
    # Namespaces with levels of their own see other problems, so what is in order for one is not for all.
    known = case.known if case.levels is case.settings.cluster_levels else None
    for index, task in enumerate(job.tasks):
        path = f"spec.tasks[{index}].template"
        template = without_plain(task.template or {})
        key = known.key(template) if known is not None else b""
        if known is not None and key in known:
            continue
        before = len(case.errors) + len(case.warnings)
        pod_template(Site(case, path), template)
        volcano_template(case, path, template)
        if known is not None and before == len(case.errors) + len(case.warnings):
            known.add(key)
