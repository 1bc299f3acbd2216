"""From a job of a trace to a Job that is admitted.

Jobs of a trace are alike but for their names. So admission is asked once for each kind of Job: its rules look at a name's characters, its
length, and, where plugins make hosts of it, its first letter.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pumice.api.kinds import JOB
from pumice.api.meta import ObjectMeta, Raw
from pumice.api.nodes import PriorityClass
from pumice.api.pods import PodSpec
from pumice.api.quantities import QuantityError
from pumice.api.queues import Queue, QueueSpec
from pumice.api.requests import Amounts, pod_requests
from pumice.controller.jobs.subject import UnusableError, min_available, read
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.controlled_job import PlainKind
from pumice.traces.plain_jobs import is_plain
from pumice.traces.trace import Trace, TraceJob

_SET_BY_CLUSTER = {
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "managedFields", "selfLink",
}  # fmt: skip
"""Metadata that an API server sets, whatever a new object says."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The answer of admission.

    Attributes:
        job: The Job with what admission has changed; None if it is refused.
        problems: Why it is refused.
    """

    job: Raw | None
    problems: list[str] = field(default_factory=list)


def job_manifest(job: TraceJob) -> Raw:
    """The Job that a user would submit."""
    if job.manifest is not None:
        given = {name: each for name, each in job.manifest.items() if name != "status"}
        meta = job.manifest.get("metadata") or {}
        own = {name: each for name, each in meta.items() if name not in _SET_BY_CLUSTER}
        own |= {"name": job.name, "namespace": job.namespace}
        return JOB.type_meta | given | {"metadata": own}
    resources: dict[str, Any] = {"requests": job.requests}
    if limits := {name: amount for name, amount in job.requests.items() if "/" in name}:
        resources["limits"] = limits  # devices cannot be asked for without
    container = {"name": "main", "image": "trace", "resources": resources}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    spec: Raw = {
        "queue": job.queue,
        "minAvailable": job.min,
        "schedulerName": "volcano",
        "tasks": [{"name": "main", "replicas": job.replicas, "template": template}],
    }
    if name := class_of(job.priority):
        spec["priorityClassName"] = name
    if job.topology is not None:
        spec["networkTopology"] = job.topology
    return JOB.type_meta | {
        "metadata": {"name": job.name, "namespace": job.namespace},
        "spec": spec,
    }


def class_of(priority: int | str) -> str:
    """Name of the PriorityClass of a job; empty for priority 0."""
    if isinstance(priority, str):
        return priority
    return f"priority-{priority}".replace("--", "-minus-") if priority else ""


def with_named(trace: Trace, objects: ClusterObjects) -> ClusterObjects:
    """The objects, with a PriorityClass for each number that is a priority, and, if there is no Queue at all, with the queues that jobs name.

    Args:
        trace: The trace.
        objects: The objects of the cluster.
    """
    known = {each.metadata.name for each in objects.priority_classes}
    numbers = {job.priority for job in trace.jobs if isinstance(job.priority, int) and job.priority}
    classes = [
        PriorityClass(metadata=ObjectMeta(name=name), value=number)
        for number in sorted(numbers)
        if (name := class_of(number)) not in known
    ]
    queues = objects.queues or [
        Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(weight=1))
        for name in sorted({job.queue for job in trace.jobs})
    ]
    return msgspec.structs.replace(
        objects, priority_classes=[*objects.priority_classes, *classes], queues=queues
    )


class JobKind(msgspec.Struct, frozen=True):
    """Jobs that are alike but for their names.

    Attributes:
        raw: One of them, admitted; None if admission refuses them.
        problems: Why it does.
        minimum: Pods that run together.
        tasks: Indexes of their tasks, by name.
        requests: What a pod of each task requests.
        specs: The spec of a pod of each task.
        plain: What they are as plain Jobs, if they are plain.
    """

    raw: Raw | None
    problems: list[str]
    minimum: int = 0
    tasks: dict[str, int] = {}
    requests: tuple[Amounts, ...] = ()
    specs: tuple[PodSpec, ...] = ()
    plain: PlainKind | None = None

    def named(self, name: str, created: str) -> Raw:
        """One of the Jobs."""
        assert self.raw is not None
        return self.raw | {
            "metadata": self.raw["metadata"] | {"name": name, "creationTimestamp": created}
        }

    @classmethod
    def of(cls, answer: Admitted) -> "JobKind":
        """Read what admission has answered."""
        if answer.job is None:
            return cls(None, answer.problems)
        try:
            job = read(answer.job)
            specs = tuple(msgspec.convert(task.pod_spec(), PodSpec) for task in job.tasks)
            requests = tuple(pod_requests(spec) for spec in specs)
        except (UnusableError, QuantityError, msgspec.ValidationError) as error:
            return cls(None, [str(error)])
        for each in requests:
            del each["pods"]
        tasks = {task.name: place for place, task in enumerate(job.tasks)}
        plain = PlainKind(job) if is_plain(job) else None
        return cls(answer.job, [], min_available(job), tasks, requests, specs, plain)


class JobSubmissions:
    """Makes Jobs of a trace, and has admission judge one of each kind."""

    def __init__(self, admit: Callable[[Raw], Admitted]) -> None:
        """Begin.

        Args:
            admit: Judges a new Job.
        """
        self._admit = admit
        self._known: dict[bytes, JobKind] = {}

    def kind_of(self, job: TraceJob) -> JobKind:
        """The kind of a job of a trace."""
        key = _ENCODER.encode(
            (
                len(job.name), job.name[:1].isalpha(), job.namespace, job.queue, job.priority,
                job.replicas, job.min, job.requests, job.topology, job.manifest,
            )
        )  # fmt: skip
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = JobKind.of(self._admit(job_manifest(job)))
        return known


_ENCODER = msgspec.msgpack.Encoder()
