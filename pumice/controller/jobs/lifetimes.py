"""When a pod began to run, when it ended, and whether it ended before its removal was requested.

The times of its containers are used. Kubelet may drop them, for example for a pod that it evicts. Then the pod's end is
the last change of a condition, and its start is the time when kubelet accepted it.

When the removal of a pod was requested does not follow from its last state. `deletionTimestamp` is the request plus the
grace period, but each later request with a shorter grace period moves both, and kubelet's own request, with which it
finishes a removal, sets the first to the present and the second to 0. A pod that exited 0 on SIGTERM then looks like one
that had succeeded before. So the change that first showed a `deletionTimestamp` decides (`first_request`). If it was not
seen, the pod counts as evicted.
"""

import math
from typing import NamedTuple

from pumice.api.meta import parse_time
from pumice.api.pods import ContainerStatus, Pod
from pumice.controller.jobs.phases import SOFT


class PodEnd(NamedTuple):
    """How a pod ended.

    Attributes:
        exit_codes: Exit codes of all containers that failed, the regular ones first.
        moment: When the last container ended; None if that is not known.
        ran: Seconds for which the pod had run; None if that is not known.
    """

    exit_codes: tuple[int, ...]
    moment: float | None
    ran: float | None


def container_statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    """Statuses of all containers of a pod, the regular ones first."""
    status = pod.status
    return (*(status.container_statuses or ()), *(status.init_container_statuses or ()))


def started(pod: Pod) -> float | None:
    """When kubelet accepted a pod."""
    return parse_time(pod.status.start_time or pod.metadata.creation_timestamp)


def end_of(pod: Pod) -> PodEnd:
    """How a pod ended. All pods of a Job may have failed at once, so this looks at each container once."""
    codes: list[int] = []
    began = end = None
    regular = pod.status.container_statuses or ()
    for statuses in (regular, pod.status.init_container_statuses or ()):
        for status in statuses:
            terminated = status.state and status.state.terminated
            if not terminated:
                continue
            if terminated.exit_code:
                codes.append(terminated.exit_code)
            if finish := parse_time(terminated.finished_at):
                end = finish if end is None else max(end, finish)
            if statuses is regular and (start := parse_time(terminated.started_at)):
                began = start if began is None else min(began, start)
    began = began or started(pod)
    end = end or _last_change(pod) or parse_time(pod.metadata.creation_timestamp)
    return PodEnd(tuple(codes), end, None if began is None or end is None else end - began)


def _last_change(pod: Pod) -> float | None:
    conditions = (parse_time(each.last_transition_time) for each in pod.status.conditions or ())
    return max(filter(None, conditions), default=None)


def first_request(old: Pod, new: Pod, *, watched: bool) -> float | None:
    """When the removal of a pod was first requested, from the change that shows a `deletionTimestamp`.

    Args:
        old: The last state that was seen before it.
        new: The state after it.
        watched: Whether a watch showed the change. If it was found in a list, earlier requests may have been missed.

    Returns:
        UNIX seconds; infinity for a pod that had ended already; None if it is not known.
    """
    if old.status.phase in SOFT:
        return math.inf
    removal = parse_time(new.metadata.deletion_timestamp)
    grace = new.metadata.deletion_grace_period_seconds
    return removal - grace if watched and removal is not None and grace is not None else None


def ended_by_itself(pod: Pod, requested: float | None) -> bool:
    """True if a pod succeeded or failed, and its containers had ended before its removal was requested.

    Times have whole seconds; a container that ended within the same second may have been stopped.

    Args:
        pod: The pod.
        requested: When its removal was first requested, as `first_request` tells.
    """
    if pod.status.phase not in SOFT:
        return False
    if pod.metadata.deletion_timestamp is None or requested == math.inf:
        return True
    states = [each.state for each in pod.status.container_statuses or ()]
    times = [parse_time(each.terminated.finished_at) for each in states if each and each.terminated]
    if requested is None or not states or len(times) < len(states):
        return False
    return all(time is not None and time < requested for time in times)
