"""The plan for the PodGroup of one gang of pods: one group for each owner, one patch for each pod.

The scheduler finds the PodGroup of a pod by the pod's annotation. The annotation is set on the pod and not in the
owner's template, because a changed template would make the owner replace its pods. The group is written first, so that
no pod names a group that does not exist.

Pods that already name a group are left alone, for example those of Spark, KubeRay, Kubeflow and LeaderWorkerSet. The
exception is a name that this controller set, of a group that is gone. Such a pod would wait forever, so the group is
created again, or the pod joins the group of its present owner. If an owner is scaled to zero, its group is removed;
otherwise the group is collected with the owner.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.kinds import POD, POD_GROUP
from pumice.api.meta import ObjectMeta, Raw
from pumice.api.pods import Pod
from pumice.controller.owners import controls_raw, described
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    Plan,
    RecordEvent,
    Step,
    UpdateObject,
)
from pumice.controller.podgroups import update
from pumice.controller.workloads.groups import wanted
from pumice.controller.workloads.owners import GROUP_PREFIX, OwnedGang, Workload, group_named_by

__all__ = ["ObservedGroup", "plan_group"]

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
    owner: Workload | None = None
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
    joining: list[Step] = [
        _join(gang, pod) for pod in members if group_named_by(pod) != gang.group_name
    ]
    if was_refused and group is not None:
        return Plan.of(target.events, joining, head)
    return Plan.of(target.events, head, joining)


def _is_member(pod: Pod, gang: OwnedGang, exists: Callable[[str], bool]) -> bool:
    """True if a pod that has not ended is in the group of its gang, or should be."""
    if pod.status.phase in _ENDED or pod.metadata.deletion_timestamp is not None:
        return False
    named = group_named_by(pod)
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
