"""When a pod began to run, when it ended, and whether it ended before its removal was requested.

The times of its containers are used. Kubelet may drop them, for example for a pod that it evicts. Then the pod's end is
the last change of a condition, and its start is the time when kubelet accepted it.
"""

from collections.abc import Iterable

from pumice.api.meta import parse_time
from pumice.api.pods import ContainerStatus, Pod, Terminated

__all__ = ["container_statuses", "ended", "ended_by_itself", "ran", "started"]


def container_statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    """Statuses of all containers of a pod, the regular ones first."""
    status = pod.status
    return (*(status.container_statuses or ()), *(status.init_container_statuses or ()))


def started(pod: Pod) -> float | None:
    """When kubelet accepted a pod."""
    return parse_time(pod.status.start_time or pod.metadata.creation_timestamp)


def ended(pod: Pod) -> float | None:
    """When the last container of a pod ended."""
    times = [parse_time(each.finished_at) for each in _ends(container_statuses(pod))]
    conditions = (parse_time(each.last_transition_time) for each in pod.status.conditions or ())
    return (
        max(filter(None, times), default=None)
        or max(filter(None, conditions), default=None)
        or parse_time(pod.metadata.creation_timestamp)
    )


def ran(pod: Pod) -> float | None:
    """Seconds for which a pod that ended had run; None if that is not known."""
    times = (parse_time(each.started_at) for each in _ends(pod.status.container_statuses or ()))
    began, end = min(filter(None, times), default=started(pod)), ended(pod)
    return None if began is None or end is None else end - began


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


def _ends(statuses: Iterable[ContainerStatus]) -> list[Terminated]:
    states = (each.state for each in statuses)
    return [state.terminated for state in states if state and state.terminated]
