"""JobTemplates: the list of the Jobs that were created from each."""

from collections.abc import Iterable

from pumice.api.meta import Raw
from pumice.controller.plan import PatchStatus, Plan

__all__ = ["plan_job_template"]

JOBS = 1000
"""Maximum number of listed Jobs, the newest: an object has at most 1.5 MB."""

_JOBS = "jobDependsOnList"


def plan_job_template(template: Raw, jobs: Iterable[Raw]) -> Plan:
    """Plan the update of the list of Jobs.

    Args:
        template: The JobTemplate as stored.
        jobs: The Jobs whose label says that they were created from it.
    """
    stored = template.get("status") or {}
    newest = sorted((job["metadata"] for job in jobs), key=_age)[-JOBS:]
    names = sorted(meta["name"] for meta in newest)
    if template["metadata"].get("deletionTimestamp") or names == (stored.get(_JOBS) or []):
        return Plan()
    rest = {key: value for key, value in stored.items() if key != _JOBS}
    return Plan.of([PatchStatus(rest | ({_JOBS: names} if names else {}))])


def _age(meta: Raw) -> tuple[str, str]:
    """Order of creation; times have one form in the API, so they compare as text."""
    return meta.get("creationTimestamp") or "", meta["name"]
