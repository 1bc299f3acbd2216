"""Labels and annotations that a Job passes on: those of templates and some of its own to pods, all of its own to its PodGroup.

Kubernetes allows 256 KiB of annotations for an object, and the controller adds a few. So annotations that fit into a
Job or a template may be too large for its pods and its PodGroup.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.labels import MOST_ANNOTATIONS, MOST_LABELS, too_many
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

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of the Job, which its PodGroup does not get."""

_COPIED = (
    keys.PREEMPTABLE,
    keys.COOLDOWN_TIME,
    keys.REVOCABLE_ZONE,
    keys.JDB_MIN_AVAILABLE,
    keys.JDB_MAX_UNAVAILABLE,
)


def handed_on(case: Case, job: Job) -> None:
    """Check that labels and annotations fit into the pods and the PodGroup of a Job."""
    for field, message, count in too_many(job.metadata.labels, job.metadata.annotations):
        case.report(JOB_MANY_LABELS, f"metadata.{field}", message, excess=count)
    own = job.metadata.annotations or {}
    if own:
        _of_group(case, own, job.metadata.labels or {})
    copied = {key: own[key] for key in _COPIED if key in own}
    for position, task in enumerate(job.tasks):
        found = task.pod_metadata().get("annotations")
        if found or copied:
            _of_pods(case, position, found if isinstance(found, dict) else {}, copied)


def _of_group(case: Case, own: Mapping[str, str], labels: Mapping[str, str]) -> None:
    copied = {key: text for key, text in own.items() if key != _LAST_APPLIED}
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
    texts = (text for pair in annotations for text in pair if isinstance(text, str))
    return sum(len(text.encode(errors="surrogatepass")) for text in texts)
