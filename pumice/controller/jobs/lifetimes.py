"""When a pod began to run, when it ended, and whether it ended before its removal was requested.

The times of its containers are used. Kubelet may drop them, for example for a pod that it evicts. Then the pod's end is
the last change of a condition, and its start is the time when kubelet accepted it.
"""

from typing import NamedTuple

from pumice.api.meta import parse_time
from pumice.api.pods import ContainerStatus, Pod

__all__ = ["PodEnd", "container_statuses", "end_of", "ended_by_itself", "started"]


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


def ended_by_itself(pod: Pod) -> bool:
    """True if the containers of a pod had ended before its removal was requested.

    Times have whole seconds; a container that ended within the same second may have been stopped.
    """
    meta = pod.metadata
    if meta.deletion_timestamp is None:
        return True
    removal, grace = parse_time(meta.deletion_timestamp), meta.deletion_grace_period_seconds
    states = [each.state for each in pod.status.container_statuses or ()]
    times = [parse_time(each.terminated.finished_at) for each in states if each and each.terminated]
    if removal is None or grace is None or not states or len(times) < len(states):
        return False
    return all(time is not None and time < removal - grace for time in times)
