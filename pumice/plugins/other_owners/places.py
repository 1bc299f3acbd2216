"""The position of a pod in its owner, from the labels and references that its controller sets."""

from dataclasses import dataclass
from typing import Any

from pumice.api import keys, kinds
from pumice.api.kinds import Kind
from pumice.api.meta import number_in
from pumice.api.raw import object_in, objects_in, text_in

JOB_NAME = "batch.kubernetes.io/job-name"
JOB_SET_NAME = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
SET_NAME = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
_JOB_SET_UID = "jobset.sigs.k8s.io/jobset-uid"
_JOB_INDEX = "jobset.sigs.k8s.io/job-index"


@dataclass(frozen=True, slots=True)
class PodPlace:
    """A pod's position.

    Attributes:
        kind: Kind of the owner.
        owner: Its name.
        uid: Its uid; empty if the pod does not have it.
        number: Number of the group of a LeaderWorkerSet; 0 for owners whose pods are wired as one Job.
        group: Replicated job that the pod belongs to; empty if the owner has no such groups.
        job: Number of the Job in the group.
        index: Number of the pod in its Job or group; None if it has none.
    """

    kind: Kind
    owner: str
    uid: str = ""
    number: int = 0
    group: str = ""
    job: int = 0
    index: int | None = None


def place(pod: dict[str, Any]) -> PodPlace | None:
    """Position of a pod; None if none of these controllers created it."""
    metadata = object_in(pod, "metadata")
    labels = object_in(metadata, "labels")
    if name := text_in(labels, SET_NAME):
        number = number_in(labels.get(GROUP_INDEX))
        index = number_in(labels.get(WORKER_INDEX)) if number is not None else None
        return PodPlace(kinds.LEADER_WORKER_SET, name, number=number or 0, index=index)
    owner = _controller(metadata)
    of_job = (owner.get("apiVersion"), owner.get("kind")) == (
        kinds.INDEXED_JOB.api_version,
        kinds.INDEXED_JOB.kind,
    )
    index = _completion_index(metadata, labels)
    if name := text_in(labels, JOB_SET_NAME):
        job = number_in(labels.get(_JOB_INDEX))
        return PodPlace(
            kinds.JOB_SET,
            name,
            text_in(labels, _JOB_SET_UID),
            group=text_in(labels, REPLICATED_JOB),
            job=job or 0,
            index=index if job is not None else None,
        )
    if not of_job:
        return None
    return PodPlace(kinds.INDEXED_JOB, text_in(owner, "name"), text_in(owner, "uid"), index=index)


def _completion_index(metadata: dict[str, Any], labels: dict[str, Any]) -> int | None:
    """The index from the annotation, which is older than the label."""
    annotations = object_in(metadata, "annotations")
    return number_in(annotations.get(keys.COMPLETION_INDEX, labels.get(keys.COMPLETION_INDEX)))


def _controller(metadata: dict[str, Any]) -> dict[str, Any]:
    references = objects_in(metadata, "ownerReferences")
    return next((each for each in references if each.get("controller") is True), {})
