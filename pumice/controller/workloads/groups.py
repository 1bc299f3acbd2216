"""The PodGroup of another controller's pods.

Its fields follow from annotations of a pod and of its owner; those of the pod take precedence. A minimum above the
number of the owner's pods could never be reached, so it is lowered to that number: during a rolling update a ReplicaSet
has only a part of its Deployment's replicas. Pods that job plugins wire wait for each other, so all of them are needed
unless a minimum is set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from pumice.api import keys, kinds
from pumice.api.json_words import quoted
from pumice.api.kinds import POD, POD_GROUP
from pumice.api.meta import Raw, controller_of
from pumice.api.pods import Pod
from pumice.api.quantities import QuantityError, format_milli
from pumice.api.requests import quota_usage
from pumice.controller.owners import controller_reference
from pumice.controller.plan import RecordEvent
from pumice.controller.podgroups import note_of_copies
from pumice.controller.workloads.owners import OWNER_KINDS, OwnedGang, Workload

__all__ = ["WantedGroup", "wanted"]

_INHERITED = "volcano.sh/"
_ANNOTATIONS = (keys.PREEMPTABLE, keys.COOLDOWN_TIME, keys.REVOCABLE_ZONE)
_LABELS = (keys.PREEMPTABLE, keys.COOLDOWN_TIME)
_BUDGETS = (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE)
_MODES = ("hard", "soft")
_LARGEST = 2**31 - 1


@dataclass(slots=True)
class WantedGroup:
    """A PodGroup, and events about its annotations.

    Attributes:
        group: The manifest.
        events: What is wrong with the annotations.
    """

    group: Raw
    events: list[RecordEvent] = field(default_factory=list)


def wanted(gang: OwnedGang, pod: Pod, owner: Workload | None, *, inherit: bool) -> WantedGroup:
    """The PodGroup of a gang.

    Args:
        gang: The gang.
        pod: The newest of its pods, whose annotations are used.
        owner: Its owner, if that is known.
        inherit: Whether annotations of the owner count.
    """
    events: list[RecordEvent] = []
    inherited = (owner.metadata.annotations or {}) if owner is not None and inherit else {}
    stated = inherited | (pod.metadata.annotations or {})
    minimum = _minimum(gang, pod, owner, stated, events)
    spec: Raw = {
        "minMember": minimum,
        "queue": stated.get(keys.NAMESPACE_QUEUE) or keys.DEFAULT_QUEUE,
        "minResources": _resources(pod, minimum, events),
    }
    if pod.spec.priority_class_name:
        spec["priorityClassName"] = pod.spec.priority_class_name
    if topology := _topology(stated, events):
        spec["networkTopology"] = topology
    labels = _chosen(pod.metadata.labels, _LABELS)
    annotations = _annotations(inherited, pod.metadata.annotations or {})
    metadata = {
        "name": gang.group_name,
        "namespace": gang.namespace,
        "labels": labels,
        "annotations": annotations | note_of_copies(labels, annotations),
        "ownerReferences": _owners(pod),
    }
    group = {
        **POD_GROUP.type_meta,
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"},
    }
    return WantedGroup(group, events)


def _minimum(
    gang: OwnedGang,
    pod: Pod,
    owner: Workload | None,
    stated: Mapping[str, str],
    events: list[RecordEvent],
) -> int:
    """Pods that must be placed together."""
    size = owner.size(gang.kind) if owner is not None else None
    is_wired = gang.kind == kinds.INDEXED_JOB and bool(pod.metadata.annotation(keys.PLUGINS))
    minimum = (size or 1) if is_wired else 1
    text = stated.get(keys.GROUP_MIN_MEMBER)
    if text is None:
        return minimum
    found = _whole_number(text)
    if not found:
        events.append(_invalid(keys.GROUP_MIN_MEMBER, "an integer from 1", text, str(minimum)))
        return minimum
    if owner is None or size is None:
        return found
    whole = owner.whole_size(gang.kind) or size
    if found > whole:
        message = (
            f"annotation {keys.GROUP_MIN_MEMBER} is {found}, and {gang.kind.kind} {gang.name} has at most {whole} pods at "
            f"once; {whole} is used. Lower the annotation, or ask for more pods"
        )
        events.append(_warning("MinMemberTooLarge", message))
    if found > 1 and owner.spec.pod_management_policy == "OrderedReady":
        message = (
            f"annotation {keys.GROUP_MIN_MEMBER} is {found}, and StatefulSet {gang.name} makes a pod only when the one before "
            "it is ready, so they never wait together; set spec.podManagementPolicy to Parallel"
        )
        events.append(_warning("PodsOneByOne", message))
    return min(found, size)


def _resources(pod: Pod, minimum: int, events: list[RecordEvent]) -> dict[str, str]:
    try:
        usage = quota_usage(pod.spec)
    except QuantityError as error:
        events.append(_warning("InvalidPod", f"resources of pod {pod.metadata.name}: {error}"))
        return {}
    return {name: format_milli(usage[name] * minimum) for name in sorted(usage)}


def _topology(stated: Mapping[str, str], events: list[RecordEvent]) -> Raw | None:
    mode = stated.get(keys.NETWORK_TOPOLOGY_MODE)
    tier = stated.get(keys.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return None
    found: Raw = {"mode": "hard"}
    if mode is not None and mode.lower() in _MODES:
        found["mode"] = mode.lower()
    elif mode is not None:
        events.append(_invalid(keys.NETWORK_TOPOLOGY_MODE, "hard or soft", mode, "hard"))
    if tier is not None:
        number = _whole_number(tier)
        if number is None:
            events.append(
                _invalid(keys.NETWORK_TOPOLOGY_HIGHEST_TIER, "an integer", tier, "no tier")
            )
        else:
            found["highestTierAllowed"] = number
    return found


def _annotations(inherited: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Annotations of the group: those of Volcano on the owner, and those of the pod about eviction."""
    found = {key: text for key, text in inherited.items() if key.startswith(_INHERITED)}
    budget = next((key for key in _BUDGETS if key in own), None)
    if budget is not None:
        for key in _BUDGETS:
            found.pop(key, None)  # of two budgets neither would be known to count
        found[budget] = own[budget]
    return found | _chosen(own, _ANNOTATIONS)


def _chosen(found: Mapping[str, str] | None, names: tuple[str, ...]) -> dict[str, str]:
    return {key: found[key] for key in names if key in found} if found else {}


def _owners(pod: Pod) -> list[Raw]:
    """The owners of a pod, or the pod itself, so that the group is collected with them."""
    meta = pod.metadata
    if controller_of(meta) is None:
        return [controller_reference(meta, POD)]
    known = {(kind.api_version, kind.kind) for kind in OWNER_KINDS}
    found: list[Raw] = []
    for each in meta.owner_references or ():
        reference: Raw = msgspec.to_builtins(each)
        if (each.api_version, each.kind) not in known:
            # Blocking the deletion of an owner needs a right that the controller has only for known kinds.
            reference.pop("blockOwnerDeletion", None)
        found.append(reference)
    return found


def _whole_number(text: str) -> int | None:
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(_LARGEST)):
        return None
    number = int(text)
    return number if number <= _LARGEST else None


def _invalid(key: str, expected: str, found: str, used: str) -> RecordEvent:
    message = f"annotation {key}: expected {expected}, found {quoted(found)}; {used} is used"
    return _warning("InvalidAnnotation", message)


def _warning(reason: str, message: str) -> RecordEvent:
    return RecordEvent("Warning", reason, message)
