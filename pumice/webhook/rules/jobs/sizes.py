"""Sizes of a Job: of what it hands on to its pods and its PodGroup, and of itself with the status that it can get.

Labels and annotations of templates and some of the Job's own go to pods, all of its own to its PodGroup. Kubernetes
allows 256 KiB of annotations for an object, and the controller adds a few. So annotations that fit into a Job or a
template may be too large for its pods and its PodGroup.

etcd stores objects of 1.5 MiB. A Job that just fits would never get a status: the API server would refuse each write of
it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.jobs import DEFAULT_MAX_PODS, Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.labels import MOST_ANNOTATIONS, MOST_LABELS, not_many
from pumice.webhook.rules.rule import stricter

JOB_ANNOTATIONS = stricter(
    "JOB-ANNOTATIONS",
    "annotations fit into the pods and the PodGroup of a Job, too",
    "Kubernetes takes 256 KiB an object; a pod gets those of its template, some of the Job's and a few more.",
    "metadata: {annotations: {volcano.sh/revocable-zone: 200 KiB …}}, "
    "template: {metadata: {annotations: {notes: 100 KiB …}}}",
    reason="FieldValueTooLong",
    compares=True,
)

JOB_MANY_LABELS = stricter(
    "JOB-MANY-LABELS",
    f"a Job has at most {MOST_LABELS} labels and {MOST_ANNOTATIONS} annotations",
    "Its PodGroup gets them, too, and controller and scheduler keep those of all PodGroups.",
    "metadata: {labels: {l0: a, l1: a, …, l256: a}}",
    reason="FieldValueTooMany",
)

_LARGEST = 256 * 1024
"""Maximum size of an object's annotations in bytes."""

_ROOM_IN_PODS = 2 * 1024
"""Bytes reserved for annotations that the controller and plugins add to a pod; about twice what the longest names need."""

_ROOM_IN_GROUP = 84
"""Bytes reserved for annotations that the controller adds to a PodGroup, besides the list of copied keys."""

_COPIED = (*keys.COPIED_ANNOTATIONS, *keys.BUDGETS)


def handed_on(case: Case, job: Job) -> None:
    """Check that labels and annotations fit into the pods and the PodGroup of a Job."""
    meta = job.metadata
    not_many(case, JOB_MANY_LABELS, "metadata", meta.labels, meta.annotations)
    own = meta.annotations or {}
    if own:
        _of_group(case, own, meta.labels or {})
    copied = {key: own[key] for key in _COPIED if key in own}
    for position, task in enumerate(job.tasks):
        found = task.pod_metadata().get("annotations")
        if found or copied:
            _of_pods(case, position, found if isinstance(found, dict) else {}, copied)


def _of_group(case: Case, own: Mapping[str, str], labels: Mapping[str, str]) -> None:
    copied = {key: text for key, text in own.items() if key != keys.LAST_APPLIED}
    size = _size(copied.items())
    room = _ROOM_IN_GROUP + _size((key, ",") for key in (*copied, *labels))
    if size > (most := _LARGEST - room):
        message = (
            f"go to the PodGroup, too, which takes {_LARGEST} bytes and gets {room} more: "
            f"must be at most {most} bytes, found {size}"
        )
        case.report(JOB_ANNOTATIONS, "metadata.annotations", message, excess=size)


def _of_pods(
    case: Case, position: int, found: Mapping[str, Any], copied: Mapping[str, str]
) -> None:
    size = _size({**found, **copied}.items())
    if size <= (most := _LARGEST - _ROOM_IN_PODS):
        return
    if not copied and size > _LARGEST:
        return  # rule TPL-ANNOTATION reports annotations that are too large for any template
    also = f", with {', '.join(copied)} of the Job" if copied else ""
    message = (
        f"go to the pods, which take {_LARGEST} bytes and get {_ROOM_IN_PODS} more: "
        f"must be at most {most} bytes{also}, found {size}"
    )
    path = f"spec.tasks[{position}].template.metadata.annotations"
    case.report(JOB_ANNOTATIONS, path, message, excess=size)


def _size(annotations: Iterable[tuple[str, Any]]) -> int:
    """Bytes of keys and values; values that are not strings count as empty."""
    texts = [text for pair in annotations for text in pair if isinstance(text, str)]
    return len("".join(texts).encode(errors="surrogatepass"))


JOB_SIZE = stricter(
    "JOB-SIZE",
    "a Job leaves room for its status",
    "etcd stores 1.5 MiB of an object, and the status has several entries for each task; without room for it the Job "
    "would never get one.",
    "spec: {tasks: [{name: t0, …}, …, {name: t9999, …}]}",
    reason="FieldValueTooLong",
)

MOST = 1_500_000
"""Bytes of a Job as JSON with its status."""

OF_A_JOB = 20_000
"""Bytes of the status besides its entries for tasks, pods and volumes: messages, notes and times."""

_OF_A_TASK, _OF_A_PHASE, _NAMES = 400, 45, 9
"""For a task: the bytes of its entries, of each further phase that its pods are in, and how often its name occurs.

The API server notes the owner of each field of a status, which takes as much again.
"""

_PODS_A_BYTE = 2
"""Pods of which four sets are written with a byte each at most; see `podsets`."""

_PHASES = 6
_CLAIMS, _OF_A_CLAIM = 200, 600


def status_bytes(job: Job) -> int:
    """The most bytes that the status of a Job takes; of more pods than a Job may have it has no notes."""
    tasks = sum(
        _OF_A_TASK + _NAMES * len(task.name) + _OF_A_PHASE * min(max(task.size, 1) - 1, _PHASES - 1)
        for task in job.tasks
    )
    tasks += min(max(job.replicas, 0), DEFAULT_MAX_PODS) // _PODS_A_BYTE
    return OF_A_JOB + tasks + _OF_A_CLAIM * min(_CLAIMS, len(job.spec.volumes or ()))


def size(case: Case, job: Job) -> None:
    """Check that the status has room beside the spec and the metadata."""
    status = status_bytes(job)
    if 0 < case.review_bytes * _GROWTH <= MOST - status:
        return
    try:
        stored = len(_encode((job.metadata.labels, job.metadata.annotations, job.spec)))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return  # other rules report numbers and texts that no API server takes
    if stored + status > MOST:
        message = (
            f"takes {stored} bytes, and the status of its {len(job.tasks)} tasks can take {status} more: "
            f"must be at most {MOST} bytes in all; divide it into several Jobs"
        )
        case.report(JOB_SIZE, "spec.tasks", message, excess=stored + status)


_GROWTH = 32
"""How many times the bytes of its review a Job can take: defaults of tasks that say nothing, and other spellings of numbers."""

_encode = msgspec.json.Encoder().encode
