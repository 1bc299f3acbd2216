"""Evictions that a policy gives time.

A policy may let some time pass (`timeout`) before it acts on an eviction, and does nothing if the pod runs
again by then. Of a pod that is gone nothing is left that could tell since when. So the pod that takes its
place carries the moment, and for as long as that one waits, the eviction lasts.
"""

from collections.abc import Iterable

from pumice.api.jobs import Job
from pumice.api.meta import format_time, parse_time
from pumice.api.pods import Pod
from pumice.controller.policies import Request, choose

__all__ = ["EVICTED_AT", "lasting", "moments"]

EVICTED_AT = "pumice.dev/evicted-at"
"""On a pod: when the one in whose place it was made was evicted."""


def lasting(pod: Pod) -> float | None:
    """Since when a pod waits in the place of an evicted one, UNIX seconds; None when it does not."""
    if pod.status.phase not in ("Pending", ""):
        return None
    return parse_time(pod.metadata.annotation(EVICTED_AT))


def moments(job: Job, evicted: Iterable[tuple[Pod, Request]], now: float) -> dict[str, str]:
    """What to write on pods that take the place of evicted ones, by their names.

    Args:
        job: The Job.
        evicted: Pods that are gone, each with its event.
        now: The moment, in UNIX seconds.
    """
    return {
        pod.metadata.name: format_time(lasting(pod) or _gone_at(pod, now))
        for pod, request in evicted
        if choose(job, request).delay
    }


def _gone_at(pod: Pod, now: float) -> float:
    # The time of a deletion is that at which the grace ends, and most pods end before.
    return min(parse_time(pod.metadata.deletion_timestamp) or now, now)
