"""How long the pods of a Job run, as far as a cluster tells: its user says it, or like Jobs that have ended do."""

from collections.abc import Iterable, Iterator, Mapping
from statistics import median

import msgspec

from pumice.api import keys
from pumice.api.durations import parse_seconds, wait_problem
from pumice.api.jobs import Job
from pumice.api.messages import counted
from pumice.api.meta import Raw
from pumice.api.raw import key_in, object_in, objects_in, text_in
from pumice.controller.jobs.phases import COMPLETED, FINISHED


def stated(own: object, pods: Iterable[object], name: str = keys.DURATION) -> float | None:
    """Seconds that an annotation says; None if it is nowhere a valid duration.

    Args:
        own: Annotations of a Job or PodGroup, which come first.
        pods: Annotations of its pods or of their templates, of which the longest duration counts.
        name: The annotation.
    """
    said = _seconds(own, name)
    of_pods = [seconds for each in pods if (seconds := _seconds(each, name)) is not None]
    return max(of_pods, default=None) if said is None else said


def _seconds(annotations: object, name: str) -> float | None:
    text = annotations.get(name) if isinstance(annotations, Mapping) else None
    return parse_seconds(text) if isinstance(text, str) else None


def ignored_durations(jobs: Iterable[Raw], others: Iterable[tuple[str, object]]) -> str:
    """A sentence about annotations `pumice.dev/duration` that are no duration; empty if all are.

    Args:
        jobs: All Jobs. Those that have ended run no more.
        others: Other objects as the sentence names them, with their annotations.
    """
    found: dict[str, str] = {}
    for name, annotations in (*_annotations_of(jobs), *others):
        text = annotations.get(keys.DURATION) if isinstance(annotations, Mapping) else None
        if isinstance(text, str) and (problem := wait_problem(text)):
            found.setdefault(name, problem)
    if not found:
        return ""
    (name, problem), more = next(iter(found.items())), len(found) - 1
    also = f", and that of {counted(more, 'more object')}" if more else ""
    return f"annotation {keys.DURATION} of {name} is ignored{also}: {problem}"


def _annotations_of(jobs: Iterable[Raw]) -> Iterator[tuple[str, object]]:
    for job in jobs:
        if text_in(object_in(object_in(job, "status"), "state"), "phase") in FINISHED:
            continue
        templates = (
            object_in(each, "template") for each in objects_in(object_in(job, "spec"), "tasks")
        )
        for holder in (job, *templates):
            yield f"Job {key_in(job)}", object_in(holder, "metadata").get("annotations")


class JobDurations:
    """Durations of Jobs of a cluster.

    Jobs are alike that have the same namespace and queue, and tasks with the same names, replicas, images and resources.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        """Take in the Jobs that have completed.

        Args:
            jobs: All Jobs that are known.
        """
        ran: dict[bytes, list[float]] = {}
        for job in jobs:
            status = job.status
            if status.state.phase == COMPLETED and status.running_duration:
                seconds = parse_seconds(status.running_duration)
                if seconds is not None:
                    ran.setdefault(_likeness(job), []).append(seconds)
        self._medians: Mapping[bytes, float] = {each: median(found) for each, found in ran.items()}

    def of(self, job: Job) -> float | None:
        """Seconds that the pods of a Job run; None if that is not known."""
        templates = [each.pod_metadata().get("annotations") for each in job.tasks]
        said = stated(job.metadata.annotations, templates)
        return self._medians.get(_likeness(job)) if said is None else said


def _likeness(job: Job) -> bytes:
    tasks = []
    for task in job.tasks:
        containers = objects_in(task.pod_spec(), "containers")
        asked = [(each.get("image"), each.get("resources")) for each in containers]
        tasks.append((task.name, task.replicas, asked))
    return _ENCODER.encode((job.metadata.namespace, job.spec.queue, tasks))


_ENCODER = msgspec.json.Encoder(order="deterministic")
