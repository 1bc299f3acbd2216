"""Annotations that a Job's plugins write onto it, for the scheduler to read."""

from pumice import plugins
from pumice.api.jobs import Job
from pumice.plugins import JobPlugin, PluginError, Registry
from pumice.webhook.patches import escape
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftJob
from pumice.webhook.rules.job_plugins import JOB_PLUGIN
from pumice.webhook.rules.job_updates import normal

__all__ = ["annotating", "job_annotations"]

_ANNOTATIONS = "/metadata/annotations"


def annotating(registry: Registry) -> frozenset[str]:
    """Names of the plugins that write annotations; Jobs without any need not be read whole."""
    return frozenset(
        plugin.name
        for plugin in registry.plugins
        if type(plugin).job_annotations is not JobPlugin.job_annotations
    )


def job_annotations(case: Case, job: Job, draft: DraftJob, old: DraftJob | None = None) -> None:
    """Write annotations into the case's patch: those that the Job lacks.

    Args:
        case: Where the patch goes.
        job: The Job as it came.
        draft: The same, as far as defaulting reads it.
        old: The Job as it is stored, when it is an update; only what it has is written again.
    """
    if any(not task.name for task in job.tasks):
        job = normal(case, job)
    strict = case.settings.strict_upstream
    try:
        wanted = plugins.job_annotations(job, case.plugins, strict_upstream=strict)
    except PluginError as error:
        case.report(JOB_PLUGIN, "spec.plugins", str(error))
        return
    if old is not None:
        stored = (old.metadata.annotations if old.metadata is not None else None) or {}
        wanted = {key: value for key, value in wanted.items() if key in stored}
    if draft.metadata is None:
        case.patch.missing("/metadata")
    if draft.metadata is None or draft.metadata.annotations is None:
        case.patch.missing(_ANNOTATIONS)
    for key, value in wanted.items():
        case.patch.set(f"{_ANNOTATIONS}/{escape(key)}", value)
