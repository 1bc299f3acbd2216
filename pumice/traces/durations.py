"""How long the pods of a Job run, as far as a cluster tells: its user says it, or like Jobs that have ended do."""

from collections.abc import Iterable, Mapping
from statistics import median

import msgspec

from pumice.api import keys
from pumice.api.durations import parse_seconds
from pumice.api.jobs import Job
from pumice.api.meta import ObjectMeta
from pumice.api.raw import objects_in

_COMPLETED = "Completed"


def stated(*metas: ObjectMeta | None) -> float | None:
    """Seconds that the annotation `pumice.dev/duration` says, of the first object that has a valid one; None if none has."""
    for meta in metas:
        text = meta.annotation(keys.DURATION) if meta is not None else ""
        if text and (seconds := parse_seconds(text)) is not None:
            return seconds
    return None


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
            if status.state.phase == _COMPLETED and status.running_duration:
                seconds = parse_seconds(status.running_duration)
                if seconds is not None:
                    ran.setdefault(_likeness(job), []).append(seconds)
        self._medians: Mapping[bytes, float] = {each: median(found) for each, found in ran.items()}

    def of(self, job: Job) -> float | None:
        """Seconds that the pods of a Job run; None if that is not known."""
        said = stated(job.metadata)
        return self._medians.get(_likeness(job)) if said is None else said


def _likeness(job: Job) -> bytes:
    tasks = []
    for task in job.tasks:
        containers = objects_in(task.pod_spec(), "containers")
        asked = [(each.get("image"), each.get("resources")) for each in containers]
        tasks.append((task.name, task.replicas, asked))
    return _ENCODER.encode((job.metadata.namespace, job.spec.queue, tasks))


_ENCODER = msgspec.json.Encoder(order="deterministic")
