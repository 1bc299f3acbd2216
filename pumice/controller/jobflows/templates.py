"""JobTemplates: which Jobs there are of one."""

from collections.abc import Iterable

from pumice.api.meta import Raw
from pumice.controller.plan import PatchStatus, Plan

__all__ = ["plan_job_template"]

_JOBS = "jobDependsOnList"


def plan_job_template(template: Raw, jobs: Iterable[Raw]) -> Plan:
    """Bring the list of Jobs up to date.

    Args:
        template: The JobTemplate as stored.
        jobs: The Jobs that say in a label that they were made from it.
    """
    stored = template.get("status") or {}
    names = sorted(job["metadata"]["name"] for job in jobs)
    if template["metadata"].get("deletionTimestamp") or names == (stored.get(_JOBS) or []):
        return Plan()
    rest = {key: value for key, value in stored.items() if key != _JOBS}
    return Plan.of([PatchStatus(rest | ({_JOBS: names} if names else {}))])
