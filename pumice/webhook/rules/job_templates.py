"""JobTemplates: whether JobFlows could make Jobs of them. Volcano does not look at them."""

from pumice.api.jobflows import JobTemplate, job_name
from pumice.api.jobs import Job
from pumice.api.meta import ObjectMeta
from pumice.webhook.rules import job_names, ratchet
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.embedded_jobs import Place, judge_job
from pumice.webhook.rules.job_names import expected_name

__all__ = ["CHECKS", "validate_create", "validate_update"]

_SHORTEST = "x"
"""Stands for the JobFlow, whose name comes first in the Job's."""


def _job(case: Case, template: JobTemplate) -> None:
    meta = ObjectMeta(
        name=job_name(_SHORTEST, expected_name(template.metadata)),
        namespace=template.metadata.namespace,
    )
    judge_job(case, Job(metadata=meta, spec=template.spec), Place())


CHECKS: tuple[Check[JobTemplate], ...] = ((job_names.JOB_NAME, _job),)
"""What is judged about a JobTemplate."""


def validate_create(case: Case, template: JobTemplate) -> None:
    """Judge a new JobTemplate."""
    run(case, CHECKS, template)


def validate_update(case: Case, template: JobTemplate, old: JobTemplate) -> None:
    """Judge a change of a JobTemplate; Jobs that were made of it stay as they are."""
    if template.metadata.deletion_timestamp or template.spec == old.spec:
        return
    ratchet.judge_update(case, CHECKS, template, old)
