"""When a Job or a gang of a dump was submitted, started and ended, as its status and its pods tell.

Statuses of Jobs come first, because they stay when pods are gone. Objects are raw JSON that anyone may have written.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pumice.api import keys
from pumice.api.durations import parse_seconds
from pumice.api.meta import Raw, parse_time
from pumice.api.raw import object_in, objects_in, text_in
from pumice.traces.durations import stated
from pumice.traces.job_list import BadLineError

_OVER = {"Completed", "Failed", "Terminated", "Aborted"}
_POD_OVER = {"Succeeded", "Failed"}
_DURATIONS = (keys.DURATION, keys.RUN_DURATION)
"""Annotations that say how long pods run, the one that counts first."""


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
    status = object_in(job, "status")
    phase = text_in(object_in(status, "state"), "phase")
    entered = [
        (text_in(each, "status"), parse_time(text_in(each, "lastTransitionTime")))
        for each in objects_in(status, "conditions")
    ]
    running = [moment for name, moment in entered if name == "Running" and moment is not None]
    start = min(running) if running else _gang_start(pods, least)
    end = (
        parse_time(text_in(object_in(status, "state"), "lastTransitionTime"))
        if phase in _OVER
        else None
    )
    if end is not None and start is None:
        ran = parse_seconds(text_in(status, "runningDuration"))
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
    failed = any(text_in(object_in(pod, "status"), "phase") == "Failed" for pod in pods)
    return _times(group, _gang_start(pods, least), _gang_end(pods, least), pods, failed)


def _times(
    found: Raw, start: float | None, end: float | None, described: Iterable[Raw], fails: bool
) -> Times:
    submit = parse_time(text_in(object_in(found, "metadata"), "creationTimestamp"))
    if submit is None:
        raise BadLineError("metadata.creationTimestamp is missing; expected a time")
    start = None if start is None else max(start, submit)
    if start is not None and end is not None:
        return Times(submit, start, max(0.0, end - start), fails)
    own, *others = [
        object_in(object_in(each, "metadata"), "annotations") for each in (found, *described)
    ]
    told = (stated(own, others, name) for name in _DURATIONS)
    return Times(submit, start, next((each for each in told if each is not None), None), fails)


def _templates(job: Raw) -> Iterator[Raw]:
    for task in objects_in(object_in(job, "spec"), "tasks"):
        yield object_in(task, "template")


def _gang_start(pods: list[Raw], least: int) -> float | None:
    """When as many pods as start together ran."""
    starts = sorted(moment for pod in pods if (moment := _pod_start(pod)) is not None)
    return starts[least - 1] if len(starts) >= least else None


def _pod_start(pod: Raw) -> float | None:
    status = object_in(pod, "status")
    begun = [
        moment
        for each in objects_in(status, "containerStatuses")
        for state in ("running", "terminated")
        if (moment := parse_time(text_in(object_in(object_in(each, "state"), state), "startedAt")))
        is not None
    ]
    return max(begun) if begun else parse_time(text_in(status, "startTime"))


def _gang_end(pods: list[Raw], least: int) -> float | None:
    """When the last pod ended, if all have and they are enough for a gang."""
    ends: list[float] = []
    for pod in pods:
        status = object_in(pod, "status")
        if text_in(status, "phase") not in _POD_OVER:
            return None
        ends += (
            moment
            for each in objects_in(status, "containerStatuses")
            if (
                moment := parse_time(
                    text_in(object_in(object_in(each, "state"), "terminated"), "finishedAt")
                )
            )
            is not None
        )
    return max(ends) if ends and len(pods) >= least else None
