"""The PodGroup of a Job: what the scheduler must place together.

It is made before any pod: pods follow once the scheduler has let the group enqueue, so that a Job that
cannot start costs the cluster one object and not a thousand. Afterwards the fields that follow from the
Job are kept current; everything else of the group belongs to the scheduler.

A restart keeps the group, its age and so its place in the line, but it must enqueue anew. So that this
happens once for each incarnation, the group carries the version that it was last reset for, written
together with the phase.

A task that waits for another (`dependsOn`) is not counted before it starts: the gang could never be
complete, because the scheduler would wait for pods that wait for the scheduler.

Admission sends the group of a Job in queue `default` into the queue that its namespace names, if that
names one. It stays there.

Labels and annotations of the Job are copied to the group. The annotation `pumice.dev/copied` lists their
keys, so that a key that the Job no longer has is removed while keys that others added stay.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pumice.api import keys
from pumice.api.jobs import Job, NetworkTopology, Task
from pumice.api.kinds import POD_GROUP
from pumice.api.meta import Raw
from pumice.api.names import pod_group_name
from pumice.controller.minresources import min_resources
from pumice.controller.owners import controller_reference
from pumice.controller.patches import difference
from pumice.controller.subject import min_available

__all__ = [
    "ADMITTED",
    "LAST_APPLIED",
    "condition_of",
    "is_current",
    "note_of_copies",
    "phase_of",
    "queue_of",
    "update",
    "wanted",
]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of the manifest: of the Job, so of no meaning on the group."""

ADMITTED = frozenset({"Inqueue", "Running", "Unknown", "Completed"})
"""Phases in which the scheduler has let the group's pods come into being."""

COPIED = "pumice.dev/copied"
"""Annotation of a group: keys of the labels, then of the annotations, that it has from its Job."""

_WHOLE = ("minTaskMember", "minResources")
_HEAD = ("labels", "annotations")


def wanted(
    job: Job,
    priorities: Mapping[str, int],
    waiting: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    lost: Mapping[str, int] | None = None,
) -> Raw:
    """The PodGroup of a Job.

    Args:
        job: The Job, complete as `subject.read` returns it.
        priorities: PriorityClass values by name.
        waiting: Names of tasks that must not start yet and have no pods.
        annotations: Annotations that plugins add.
        lost: Numbers of pods by task that succeeded and exist no longer: the gang needs as many fewer.

    Raises:
        UnusableError: A pod template asks for something that is no quantity.
    """
    meta = job.metadata
    tasks = [task for task in job.tasks if task.name not in waiting]
    minimum = min_available(job)
    if waiting:
        minimum = min(minimum, sum(task.minimum for task in tasks))
    labels = dict(meta.labels or {})
    copied = {
        key: text
        for key, text in (dict(meta.annotations or {}) | dict(annotations or {})).items()
        if key not in (LAST_APPLIED, COPIED)
    }
    noted = note_of_copies(labels, copied)
    succeeded = lost or {}
    minimum = max(min(minimum, 1), minimum - sum(succeeded.values()))
    spec: Raw = {
        "minMember": minimum,
        "minTaskMember": {
            task.name: max(0, task.minimum - succeeded.get(task.name, 0)) for task in tasks
        },
        "queue": job.spec.queue or keys.DEFAULT_QUEUE,
        "minResources": min_resources(job, tasks, minimum, priorities),
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if topology := _topology(job.spec.network_topology):
        spec["networkTopology"] = topology
    if policies := [_sub_group(task) for task in job.tasks if task.partition_policy]:
        spec["subGroupPolicy"] = policies
    return {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.kind,
        "metadata": {
            "name": pod_group_name(meta.name, meta.uid),
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": copied | noted | {keys.JOB_VERSION: str(job.status.version)},
            "ownerReferences": [controller_reference(meta)],
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def update(stored: Raw, target: Raw) -> Raw:
    """The merge patch that brings a stored group to its target; empty when there is nothing to do.

    The status is touched only to send a group of an earlier incarnation back to `Pending`.
    """
    meta = stored["metadata"]
    patch: Raw = {}
    wish = target["spec"] | {"queue": queue_of(target["spec"]["queue"], stored)}
    if spec := difference(stored.get("spec") or {}, wish, _WHOLE):
        patch["spec"] = spec
    changed = difference(meta, {key: target["metadata"][key] for key in _HEAD})
    for section, gone in _no_longer_copied(meta, target["metadata"]):
        changed[section] = changed.get(section, {}) | dict.fromkeys(gone)
    if not is_current(stored, target):
        patch["status"] = {"phase": "Pending", "conditions": None}
    if changed or patch:
        patch["metadata"] = changed | {
            "uid": meta.get("uid"),
            "resourceVersion": meta.get("resourceVersion"),
        }
    return patch


def note_of_copies(labels: Iterable[str], annotations: Iterable[str]) -> dict[str, str]:
    """The annotation that lists what a group has from its owner; none when that is nothing."""
    listed = f"{','.join(sorted(labels))};{','.join(sorted(annotations))}"
    return {COPIED: listed} if listed != ";" else {}


def is_current(stored: Raw, target: Raw) -> bool:
    """Whether a stored group speaks of the Job's present incarnation."""
    return _version(stored) == _version(target)


def queue_of(chosen: str | None, group: Raw | None) -> str:
    """The queue that a Job is in: the one it names, or else the one that its group was given.

    Args:
        chosen: The Job's queue; `default` or nothing means that it chose none.
        group: Its PodGroup, when there is one.
    """
    if chosen and chosen != keys.DEFAULT_QUEUE:
        return chosen
    given = ((group or {}).get("spec") or {}).get("queue")
    return str(given or keys.DEFAULT_QUEUE)


def phase_of(group: Raw) -> str:
    """Phase of a group; `Pending` when the scheduler has not seen it yet."""
    return str((group.get("status") or {}).get("phase") or "Pending")


def condition_of(group: Raw) -> tuple[str, str] | None:
    """Reason and message of the newest condition, when it says that the group does not fit."""
    conditions = (group.get("status") or {}).get("conditions") or ()
    standing = [each for each in conditions if each.get("status") == "True"]
    if not standing:
        return None
    # Times have whole seconds only; among equals the later entry is the newer one.
    newest = max(reversed(standing), key=lambda each: str(each.get("lastTransitionTime") or ""))
    if newest.get("type") == "Scheduled":
        return None
    return str(newest.get("reason") or newest.get("type")), str(newest.get("message") or "")


def _no_longer_copied(stored: Raw, target: Raw) -> Iterator[tuple[str, list[str]]]:
    """Keys that a group has from its Job and that the Job no longer has, by section of the metadata."""
    noted = str((stored.get("annotations") or {}).get(COPIED, "")).partition(";")
    for section, text in zip(_HEAD, (noted[0], noted[2]), strict=True):
        had = {*text.split(","), COPIED} if section == "annotations" else set(text.split(","))
        gone = sorted((had & (stored.get(section) or {}).keys()) - target[section].keys())
        if gone:
            yield section, gone


def _version(group: Raw) -> str:
    return str((group["metadata"].get("annotations") or {}).get(keys.JOB_VERSION, "0"))


def _topology(topology: NetworkTopology | None) -> Raw | None:
    if topology is None:
        return None
    found: Raw = {"mode": topology.mode or "hard"}
    if topology.highest_tier_allowed is not None:
        found["highestTierAllowed"] = topology.highest_tier_allowed
    elif topology.highest_tier_name:
        found["highestTierName"] = topology.highest_tier_name
    return found


def _sub_group(task: Task) -> Raw:
    policy = task.partition_policy
    assert policy is not None
    found: Raw = {
        "name": task.name,
        "subGroupSize": policy.partition_size,
        "minSubGroups": policy.min_partitions,
        "labelSelector": {"matchLabels": {keys.TASK_SPEC: task.name}},
        "matchLabelKeys": [keys.PARTITION_ID],
    }
    if topology := _topology(policy.network_topology):
        found["networkTopology"] = topology
    return found
