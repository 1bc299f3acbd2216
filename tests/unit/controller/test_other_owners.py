"""The PodGroup of other controllers' pods, and who joins it."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from pumice.api import keys
from pumice.api.kinds import POD, POD_GROUP, REPLICA_SET
from pumice.api.meta import OwnerReference
from pumice.api.pods import Pod
from pumice.controller.other_owners import ObservedGroup, PodOwner, gang_of, plan_group
from pumice.controller.plan import CreateObject, DeleteObject, Plan, RecordEvent, UpdateObject
from pumice.controller.podgroups import COPIED
from tests.kit.tables import table
from tests.unit.controller.fake_cluster import merge

Raw = dict[str, Any]

CASES: list[Raw] = table("controller/other_owners")
API_VERSIONS = {"Job": "batch/v1", "ReplicationController": "v1"}


def pods_of(case: Raw) -> Iterator[Pod]:
    for name, each in case["pods"].items():
        requests = {"cpu": each.get("cpu"), "nvidia.com/gpu": each.get("gpu")}
        container = {
            "name": "main",
            "resources": {
                "requests": {key: str(value) for key, value in requests.items() if value}
            },
        }
        group = {keys.GROUP_NAME: each["group"]} if "group" in each else {}
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": f"2026-01-01T00:00:{30 - each.get('age', 0):02}Z",
            "labels": each.get("labels", {}),
            "annotations": each.get("annotations", {}) | group,
        }
        if "deletionTimestamp" in each:
            metadata["deletionTimestamp"] = each["deletionTimestamp"]
        if "owner" in case:
            metadata["ownerReferences"] = [reference(case["owner"])]
        raw = {
            "metadata": metadata,
            "spec": {"containers": [container], "priorityClassName": each.get("class", "")},
            "status": {"phase": each.get("phase", "Pending")},
        }
        yield msgspec.convert(raw, Pod)


def reference(owner: Raw) -> Raw:
    api_version = owner.get("apiVersion") or API_VERSIONS.get(owner["kind"], "apps/v1")
    whose = {"apiVersion": api_version, "kind": owner["kind"], "name": "web", "uid": "u1"}
    return whose | {"controller": True, "blockOwnerDeletion": True}


def workload(case: Raw) -> PodOwner | None:
    owner = case.get("owner", {"shows": False})
    if not owner.get("shows", True):
        return None
    metadata = {"name": "web", "namespace": "default", "uid": "u1"}
    metadata |= {key: owner[key] for key in ("annotations", "deletionTimestamp") if key in owner}
    return msgspec.convert({"metadata": metadata, "spec": owner}, PodOwner)


def picture(case: Raw, group: Raw | None) -> ObservedGroup:
    pods = list(pods_of(case))
    if "owner" in case:
        refers = msgspec.convert(reference(case["owner"]), OwnerReference)
        some = Pod().metadata
        gang = gang_of(
            msgspec.structs.replace(some, namespace="default", owner_references=[refers])
        )
        read = case["owner"].get("looked_up")
        owner = workload(case) if gang.is_watched or read else None
        unread = RecordEvent("Normal", "OwnerNotRead", "") if read is False else None
        return ObservedGroup(gang, pods, owner, group, unread)
    return ObservedGroup(gang_of(pods[0].metadata), pods, None, group)


def planned(case: Raw, group: Raw | None) -> Plan:
    others = case.get("groups", ())
    return plan_group(picture(case, group), others.__contains__, inherit=case.get("inherit", True))


def stored(case: Raw) -> Raw | None:
    """The group that exists: as it should be, but for what `before` says."""
    if "before" not in case:
        return None
    with_pods = case | {"pods": case["pods"] or {"p1": {}}}
    if case.get("owner", {}).get("replicas") == 0 or case.get("owner", {}).get("suspend"):
        with_pods |= {"owner": case["owner"] | {"replicas": 1, "suspend": False}}
        with_pods["pods"] = {"p1": {}}
    [made] = [each for each in planned(with_pods, None).steps if isinstance(each, CreateObject)]
    group = made.manifest
    group["metadata"] |= {"uid": "g1", "resourceVersion": "7"}
    before = case["before"] or {}
    merge(group["spec"], before.get("spec", {}))
    merge(
        group["metadata"],
        {key: text for key, text in before.items() if key != "spec"},
    )
    return group


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_what_becomes_of_the_group(case: Raw) -> None:
    group = stored(case)
    plan = planned(case, group)
    steps = list(plan.steps)

    done, after = carried_out(steps, group)
    assert done == case.get("does", "create")
    joins = [each.name for each in steps if isinstance(each, UpdateObject) and each.kind == POD]
    wanting = [name for name, each in case["pods"].items() if "group" not in each]
    assert joins == case.get("joins", wanting if done != "nothing" else [])
    events = [each.reason for each in steps if isinstance(each, RecordEvent)]
    assert events == case.get("events", [])
    if after is not None and done != "nothing":
        assert_group(case, after)
        assert [each for each in planned(case, after).steps if is_group(each)] == []


def is_group(step: object) -> bool:
    return isinstance(step, CreateObject | UpdateObject | DeleteObject) and step.kind == POD_GROUP


def carried_out(steps: list[Any], group: Raw | None) -> tuple[str, Raw | None]:
    """What a plan does to the group, and what it is then."""
    found = [each for each in steps if is_group(each)]
    assert len(found) <= 1
    match found:
        case [CreateObject(manifest=manifest)]:
            manifest["metadata"] |= {"uid": "g1", "resourceVersion": "7"}
            return "create", manifest
        case [UpdateObject(patch=patch)]:
            assert group is not None
            guard = {key: patch["metadata"][key] for key in ("uid", "resourceVersion")}
            assert guard == {"uid": "g1", "resourceVersion": "7"}
            merge(group, patch)
            return "update", group
        case [DeleteObject(uid=uid)]:
            assert uid == "g1"
            return "delete", None
    return "nothing", group


def assert_group(case: Raw, group: Raw) -> None:
    meta, spec = group["metadata"], group["spec"]
    assert {key: spec.get(key) for key in case.get("spec", {})} == case.get("spec", {})
    assert meta["name"] == case.get("name", meta["name"])
    owners = [[each["kind"], each["uid"]] for each in meta["ownerReferences"]]
    assert owners == case.get("owners", owners)
    assert group["status"]["phase"] == case.get("phase", "Pending")
    annotations = {key: text for key, text in meta["annotations"].items() if key != COPIED}
    assert annotations == case.get("annotations", annotations)
    assert meta["labels"] == case.get("labels", meta["labels"])


def of_two(**owner: Any) -> Raw:
    return {"owner": {"kind": "ReplicaSet", "replicas": 2} | owner, "pods": {"p1": {}, "p2": {}}}


def test_the_group_is_written_before_pods_name_it() -> None:
    stages = planned(of_two(), None).stages
    kinds = [[each.kind.kind for each in stage] for stage in stages]  # type: ignore[union-attr]
    assert kinds == [["PodGroup"], ["Pod", "Pod"]]


def test_a_pod_joins_by_one_patch_that_is_for_this_very_pod() -> None:
    [join] = [
        each
        for each in planned(of_two() | {"pods": {"p1": {}}}, None).steps
        if isinstance(each, UpdateObject)
    ]
    assert join.patch == {
        "metadata": {"uid": "p1", "annotations": {"scheduling.k8s.io/group-name": "podgroup-u1"}}
    }


def test_messages_say_what_was_found_and_what_to_do() -> None:
    key = "scheduling.volcano.sh/group-min-member"
    messages = [
        each.message
        for case in (
            of_two(annotations={key: "many"}),
            of_two(annotations={key: "5"}),
            of_two(kind="StatefulSet", podManagementPolicy="OrderedReady", annotations={key: "2"}),
        )
        for each in planned(case, None).steps
        if isinstance(each, RecordEvent)
    ]
    bad, large, ordered = messages
    assert bad == f'annotation {key}: expected an integer from 1, found "many"; 1 is used'
    assert large == (
        f"annotation {key} is 5, and ReplicaSet web has at most 2 pods at once; 2 is used. Lower the annotation, or ask for "
        "more pods"
    )
    assert ordered == (
        f"annotation {key} is 2, and StatefulSet web makes a pod only when the one before it is ready, so they never wait "
        "together; set spec.podManagementPolicy to Parallel"
    )


def test_the_deletion_of_an_owner_is_blocked_where_the_controller_may() -> None:
    """To block it takes the right to change finalizers of the owner, where that admission plugin is on."""
    blocked = {}
    for kind in ("ReplicaSet", "RayCluster"):
        api_version = "apps/v1" if kind == "ReplicaSet" else "ray.io/v1"
        plan = planned(of_two(kind=kind, apiVersion=api_version), None)
        [made] = [each for each in plan.steps if isinstance(each, CreateObject)]
        [owner] = made.manifest["metadata"]["ownerReferences"]
        blocked[kind] = owner.get("blockOwnerDeletion", False)
    assert blocked == {"ReplicaSet": True, "RayCluster": False}


def test_of_an_owner_only_what_is_read_is_remembered() -> None:
    raw = {
        "metadata": {
            "name": "web",
            "labels": {"app": "web"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "main"}]}}},
    }
    read = msgspec.convert(raw, PodOwner)
    assert msgspec.to_builtins(read) == {"metadata": {"name": "web"}, "spec": {"replicas": 3}}
    assert read.size(REPLICA_SET) == 3
