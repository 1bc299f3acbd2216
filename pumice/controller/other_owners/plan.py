"""The plan for the PodGroup of one gang of pods: one group for each owner, one patch for each pod.

The scheduler finds the PodGroup of a pod by the pod's annotation. The annotation is set on the pod and not in the
owner's template, because a changed template would make the owner replace its pods. The group is written first, so that
no pod names a group that does not exist.

Pods that already name a group are left alone, for example those of Spark, KubeRay, Kubeflow and LeaderWorkerSet. The
exception is a name that this controller set, of a group that is gone. Such a pod would wait forever, so the group is
created again, or the pod joins the group of its present owner. If an owner is scaled to zero, its group is removed;
otherwise the group is collected with the owner.

The fields of a group follow from annotations of a pod and of its owner; those of the pod take precedence. A minimum above the
number of the owner's pods could never be reached, so it is lowered to that number: during a rolling update a ReplicaSet
has only a part of its Deployment's replicas. Pods that job plugins wire wait for each other, so all of them are needed
unless a minimum is set.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from pumice.api import keys, kinds
from pumice.api.json_words import quoted
from pumice.api.kinds import POD, POD_GROUP
from pumice.api.meta import MAX_INT32, ObjectMeta, Raw, controller_of
from pumice.api.pods import Pod
from pumice.api.quantities import QuantityError, format_milli
from pumice.api.requests import quota_usage
from pumice.controller.objects import controller_reference, controls_raw, described
from pumice.controller.other_owners.owners import (
    GROUP_PREFIX,
    OWNER_KINDS,
    OwnedGang,
    PodOwner,
)
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    Plan,
    RecordEvent,
    Step,
    UpdateObject,
)
from pumice.controller.podgroups import note_of_copies, update

_INHERITED = "volcano.sh/"
_MODES = ("hard", "soft")


@dataclass(slots=True)
class WantedGroup:
    """A PodGroup, and events about its annotations.

    Attributes:
        group: The manifest.
        events: What is wrong with the annotations.
    """

    group: Raw
    events: list[RecordEvent] = field(default_factory=list)


def wanted(gang: OwnedGang, pod: Pod, owner: PodOwner | None, *, inherit: bool) -> WantedGroup:
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
    labels = _chosen(pod.metadata.labels, keys.COPIED_LABELS)
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
    owner: PodOwner | None,
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
    budget = next((key for key in keys.BUDGETS if key in own), None)
    if budget is not None:
        for key in keys.BUDGETS:
            found.pop(key, None)  # of two budgets neither would be known to count
        found[budget] = own[budget]
    return found | _chosen(own, keys.COPIED_ANNOTATIONS)


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
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(MAX_INT32)):
        return None
    number = int(text)
    return number if number <= MAX_INT32 else None


def _invalid(key: str, expected: str, found: str, used: str) -> RecordEvent:
    message = f"annotation {key}: expected {expected}, found {quoted(found)}; {used} is used"
    return _warning("InvalidAnnotation", message)


def _warning(reason: str, message: str) -> RecordEvent:
    return RecordEvent("Warning", reason, message)


_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class ObservedGroup:
    """The observed state of a gang.

    Attributes:
        gang: The gang.
        pods: Its pods.
        owner: Its owner; None for one that cannot be looked up, or that the caches do not show yet.
        group: Its PodGroup, if there is one.
        unread: Why the owner could not be looked up; it is recorded with the creation of the PodGroup.
    """

    gang: OwnedGang
    pods: Sequence[Pod]
    owner: PodOwner | None = None
    group: Raw | None = None
    unread: RecordEvent | None = None

    def members(self, exists: Callable[[str], bool]) -> list[Pod]:
        """The pods that are in the group, or should be.

        Args:
            exists: Whether the namespace has a PodGroup of a name.
        """
        return [pod for pod in self.pods if _is_member(pod, self.gang, exists)]


def plan_group(
    picture: ObservedGroup,
    exists: Callable[[str], bool],
    *,
    inherit: bool = True,
    was_refused: bool = False,
) -> Plan:
    """The plan that gives the pods of a gang their PodGroup.

    Args:
        picture: The observed state.
        exists: Whether the namespace has a PodGroup of a name.
        inherit: Whether annotations of the owner count.
        was_refused: Whether a part of the last plan was refused. A refused change of the group must not delay pods.
    """
    gang, owner, group = picture.gang, picture.owner, picture.group
    if gang.is_watched and owner is None:
        return Plan()  # its pods cannot be older: either the cache will show it, or it is deleted and so will they be
    if owner is not None and owner.metadata.deletion_timestamp:
        return Plan()
    if owner is not None and owner.size(gang.kind) == 0:
        return _scaled_to_nothing(picture)
    members = picture.members(exists)
    if not members:
        return Plan()
    target = wanted(gang, max(members, key=_age), owner, inherit=inherit)
    if group is None:
        head: list[Step] = [CreateObject(POD_GROUP, target.group)]
        target.events.extend([picture.unread] if picture.unread else [])
    elif _belongs(gang, group):
        patch = _patch(gang, group, target.group)
        head = [UpdateObject(POD_GROUP, gang.namespace, gang.group_name, patch)] if patch else []
    else:
        message = f"PodGroup {gang.group_name} belongs to {described(group)}; delete it, so that it can be made for these pods"
        return Plan.of([RecordEvent("Warning", "NameConflict", message)])
    joining: list[Step] = [_join(gang, pod) for pod in members if pod.group != gang.group_name]
    if was_refused and group is not None:
        return Plan.of(target.events, joining, head)
    return Plan.of(target.events, head, joining)


def _is_member(pod: Pod, gang: OwnedGang, exists: Callable[[str], bool]) -> bool:
    """True if a pod that has not ended is in the group of its gang, or should be."""
    if pod.status.phase in _ENDED or pod.metadata.deletion_timestamp is not None:
        return False
    named = pod.group
    if named in ("", gang.group_name):
        return True
    return named.startswith(GROUP_PREFIX) and not exists(named)


def _scaled_to_nothing(picture: ObservedGroup) -> Plan:
    """Remove the group of an owner that wants no pods, once it has none."""
    gang, group = picture.gang, picture.group
    if picture.pods or group is None:
        return Plan()
    if not controls_raw(_meta(gang), group) or group["metadata"].get("deletionTimestamp"):
        return Plan()
    return Plan.of([DeleteObject(POD_GROUP, gang.namespace, gang.group_name, group["metadata"]["uid"])])  # fmt: skip


def _belongs(gang: OwnedGang, group: Raw) -> bool:
    """True if a group with the gang's name belongs to the gang; a group without a controller is adopted."""
    return controls_raw(_meta(gang), group) or described(group) == "no controller"


def _patch(gang: OwnedGang, stored: Raw, target: Raw) -> Raw:
    """The merge patch for the fields that this controller sets; fields of the scheduler and of others stay."""
    patch = update(stored, target)
    changed: Raw = {}
    if "networkTopology" in (stored.get("spec") or {}) and "networkTopology" not in target["spec"]:
        patch.setdefault("spec", {})["networkTopology"] = None
    if not controls_raw(_meta(gang), stored):
        others = stored["metadata"].get("ownerReferences") or []
        changed["ownerReferences"] = [*others, *target["metadata"]["ownerReferences"]]
    if not patch and not changed:
        return {}
    meta = stored["metadata"]
    guard = {"uid": meta.get("uid"), "resourceVersion": meta.get("resourceVersion")}
    return patch | {"metadata": patch.get("metadata", {}) | changed | guard}


def _join(gang: OwnedGang, pod: Pod) -> UpdateObject:
    meta = pod.metadata
    patch = {"metadata": {"uid": meta.uid, "annotations": {keys.GROUP_NAME: gang.group_name}}}
    return UpdateObject(POD, meta.namespace, meta.name, patch)


def _age(pod: Pod) -> tuple[str, str]:
    """Newer pods compare greater; times have one form in the API, so they compare as text."""
    return pod.metadata.creation_timestamp or "", pod.metadata.name


def _meta(gang: OwnedGang) -> ObjectMeta:
    return ObjectMeta(name=gang.name, namespace=gang.namespace, uid=gang.uid)
