"""When a Job or a gang of a dump was submitted, started and ended, as its status and its pods tell.

Statuses of Jobs come first, because they stay when pods are gone. Objects are raw JSON that anyone may have written.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pumice.api import keys
from pumice.api.durations import parse_seconds
from pumice.api.meta import parse_time
from pumice.traces.job_list import BadLineError

Raw = dict[str, Any]

_OVER = {"Completed", "Failed", "Terminated", "Aborted"}
_POD_OVER = {"Succeeded", "Failed"}
_DURATIONS = ("pumice.dev/duration", keys.RUN_DURATION)
"""Annotations that say how long a pod runs."""


class Times(NamedTuple):
    """Times of a Job or a gang, in UNIX seconds.

    Attributes:
        submit: Its creation.
        start: When enough of its pods ran; None if they did not.
        duration: How long it ran, or runs as an annotation says; None if that is not known.
        fails: Whether it failed.
    """

    submit: float
    start: float | None
    duration: float | None
    fails: bool


def times_of_job(job: Raw, pods: list[Raw], least: int) -> Times:
    """Times of a Job.

    Args:
        job: The Job.
        pods: Those of its pods that are still there.
        least: How many of them start together.

    Raises:
        BadLineError: It has no creation time.
    """
    status = part(job, "status")
    phase = text(part(status, "state"), "phase")
    entered = [
        (text(each, "status"), parse_time(text(each, "lastTransitionTime")))
        for each in listed(status, "conditions")
    ]
    running = [moment for name, moment in entered if name == "Running" and moment is not None]
    start = min(running) if running else _gang_start(pods, least)
    end = parse_time(text(part(status, "state"), "lastTransitionTime")) if phase in _OVER else None
    if end is not None and start is None:
        ran = parse_seconds(text(status, "runningDuration"))
        start = None if ran is None else end - ran
    if end is None:
        end = _gang_end(pods, least)
    if end is None and phase in _OVER:
        start = None  # it does not run any more, and how long it did is not known
    return _times(job, start, end, _templates(job), phase == "Failed")


def times_of_gang(group: Raw, pods: list[Raw], least: int) -> Times:
    """Times of a PodGroup that belongs to no Job.

    Raises:
        BadLineError: It has no creation time.
    """
    failed = any(text(part(pod, "status"), "phase") == "Failed" for pod in pods)
    return _times(group, _gang_start(pods, least), _gang_end(pods, least), pods, failed)


def _times(
    found: Raw, start: float | None, end: float | None, described: Iterable[Raw], fails: bool
) -> Times:
    submit = parse_time(text(part(found, "metadata"), "creationTimestamp"))
    if submit is None:
        raise BadLineError("metadata.creationTimestamp is missing; expected a time")
    start = None if start is None else max(start, submit)
    if start is not None and end is not None:
        return Times(submit, start, max(0.0, end - start), fails)
    told = [
        seconds
        for each in (found, *described)
        for key in _DURATIONS
        if (seconds := parse_seconds(text(part(part(each, "metadata"), "annotations"), key)))
        is not None
    ]
    return Times(submit, start, max(told, default=None), fails)


def _templates(job: Raw) -> Iterator[Raw]:
    for task in listed(part(job, "spec"), "tasks"):
        yield part(task, "template")


def _gang_start(pods: list[Raw], least: int) -> float | None:
    """When as many pods as start together ran."""
    starts = sorted(moment for pod in pods if (moment := _pod_start(pod)) is not None)
    return starts[least - 1] if len(starts) >= least else None


def _pod_start(pod: Raw) -> float | None:
    status = part(pod, "status")
    begun = [
        moment
        for each in listed(status, "containerStatuses")
        for state in ("running", "terminated")
        if (moment := parse_time(text(part(part(each, "state"), state), "startedAt"))) is not None
    ]
    return max(begun) if begun else parse_time(text(status, "startTime"))


def _gang_end(pods: list[Raw], least: int) -> float | None:
    """When the last pod ended, if all have and they are enough for a gang."""
    ends: list[float] = []
    for pod in pods:
        status = part(pod, "status")
        if text(status, "phase") not in _POD_OVER:
            return None
        ends += (
            moment
            for each in listed(status, "containerStatuses")
            if (moment := parse_time(text(part(part(each, "state"), "terminated"), "finishedAt")))
            is not None
        )
    return max(ends) if ends and len(pods) >= least else None


def part(value: Raw, name: str) -> Raw:
    """A field that is an object; empty if it is not."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def listed(value: Raw, name: str) -> list[Raw]:
    """The objects of a field that is a list; empty if it is not."""
    found = value.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text(value: Raw, name: str) -> str:
    """A field that is a string; empty if it is not."""
    found = value.get(name)
    return found if isinstance(found, str) else ""
