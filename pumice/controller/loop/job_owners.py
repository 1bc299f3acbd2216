"""Owners of Jobs, CronJobs and JobFlows, as far as the Job controller depends on them.

Each records its Jobs in its status, and would run a Job again that is removed before that. They are watched also if
their controllers do not run in this process.
"""

from collections.abc import Callable

from pumice.api.kinds import CRON_JOB, JOB_FLOW
from pumice.api.meta import Raw
from pumice.cluster.cache import WatchCache
from pumice.controller.cronjobs import awaits_note
from pumice.controller.jobflows import awaits_end
from pumice.controller.loop.watches import Watches
from pumice.controller.owners import controller_raw

__all__ = ["JobOwners"]

Awaits = Callable[[Raw, Raw], bool]
"""True if an owner has not yet recorded the end of one of its Jobs."""


class JobOwners:
    """The CronJobs and JobFlows that own Jobs."""

    def __init__(self, watches: Watches) -> None:
        """Create the caches."""
        self._caches: dict[str, tuple[WatchCache[Raw], Awaits]] = {
            kind.kind: (watches.of(kind, dict, optional=True), awaits)
            for kind, awaits in ((CRON_JOB, awaits_note), (JOB_FLOW, _awaits_end))
        }

    def await_note(self, job: Raw) -> bool:
        """True if an ended Job must stay until its owner has recorded it.

        This is false if the owner is gone or has another uid.
        """
        owner = controller_raw(job)
        if owner.get("kind") not in self._caches:
            return False
        cache, awaits = self._caches[owner["kind"]]
        if owner.get("apiVersion") != cache.kind.api_version:
            return False
        if not cache.synced.is_set():
            return True
        found = cache.get(str(owner.get("name")), job["metadata"].get("namespace", ""))
        return (
            found is not None
            and found["metadata"].get("uid") == owner.get("uid")
            and awaits(found, job)
        )


def _awaits_end(job_flow: Raw, job: Raw) -> bool:
    return awaits_end(job_flow, job["metadata"]["name"])
