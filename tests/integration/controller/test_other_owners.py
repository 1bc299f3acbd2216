"""PodGroups for pods that other controllers make, on the embedded API server; the test plays these controllers."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from pumice.api.kinds import (
    EVENT,
    INDEXED_JOB,
    POD,
    POD_GROUP,
    QUEUE,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from pumice.cluster.client import Client
from pumice.controller.other_owners import plan_group
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.mortal import MortalClient, mortal_stage
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, queue, task

Raw = dict[str, Any]

GROUP_NAME = "scheduling.k8s.io/group-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def owner(kind: Kind, name: str = "web", minimum: str = "", **spec: Any) -> Raw:
    annotations = {MIN_MEMBER: minimum} if minimum else {}
    restarts = {"restartPolicy": "Never"} if kind == INDEXED_JOB else {}
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]} | restarts}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"template": template} | spec,
    }


def pod(name: str, of: Raw | None = None, **metadata: Any) -> Raw:
    """A pod of our scheduler, as its owner's controller makes it."""
    meta: Raw = {"name": name, "namespace": "default"} | metadata
    if of is not None:
        reference = {"apiVersion": of["apiVersion"], "kind": of["kind"]}
        reference |= {key: of["metadata"][key] for key in ("name", "uid")}
        meta["ownerReferences"] = [reference | {"controller": True, "blockOwnerDeletion": True}]
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def make(client: Client, kind: Kind, manifest: Raw) -> Raw:
    return await client.create(kind, manifest, "default")


async def web(client: Client, replicas: int = 2, minimum: str = "2") -> Raw:
    """A ReplicaSet with its pods."""
    made = await make(client, REPLICA_SET, owner(REPLICA_SET, minimum=minimum, replicas=replicas))
    for number in range(replicas):
        await make(client, POD, pod(f"web-{number}", made))
    return made


async def scale(client: Client, replicas: int) -> None:
    await client.patch(REPLICA_SET, "web", "default", {"spec": {"replicas": replicas}})


def groups_of_pods(stage: ControllerStage) -> dict[str, str]:
    """The PodGroup that each pod names."""
    return {
        each["metadata"]["name"]: each["metadata"].get("annotations", {}).get(GROUP_NAME, "")
        for each in stage.all(POD)
    }


def minimum(stage: ControllerStage, made: Raw) -> int | None:
    group = stage.find(POD_GROUP, f"podgroup-{made['metadata']['uid']}")
    found = group.get("spec", {}).get("minMember")
    return None if found is None else int(found)


async def joined(stage: ControllerStage) -> None:
    """Wait until each pod names a PodGroup that there is."""
    await stage.until(lambda: set(groups_of_pods(stage).values()) <= set(stage.names(POD_GROUP)))


def reasons(stage: ControllerStage) -> list[str]:
    return [each["reason"] for each in stage.all(EVENT)]


async def test_a_gang_of_a_replica_set_is_scheduled(
    played: ControllerStage, client: Client
) -> None:
    made = await web(client)
    await played.until(lambda: list(played.pod_phases().values()) == ["Running"] * 2, "two pods")
    await joined(played)
    [group] = played.all(POD_GROUP)
    assert group["metadata"]["name"] == f"podgroup-{made['metadata']['uid']}"
    assert group["spec"]["minMember"] == 2
    assert group["spec"]["minResources"]["cpu"] == "2"


@pytest.mark.parametrize(
    ("kind", "spec"), [(STATEFUL_SET, {"replicas": 2}), (INDEXED_JOB, {"parallelism": 2})]
)
async def test_pods_of_an_owner_share_a_group_and_a_pod_alone_has_its_own(
    stage: ControllerStage, client: Client, kind: Kind, spec: Raw
) -> None:
    made = await make(client, kind, owner(kind, **spec))
    for name in ("web-0", "web-1"):
        await make(client, POD, pod(name, made))
    alone = await make(client, POD, pod("alone"))
    await joined(stage)
    shared = f"podgroup-{made['metadata']['uid']}"
    own = f"podgroup-{alone['metadata']['uid']}"
    assert groups_of_pods(stage) == {"alone": own, "web-0": shared, "web-1": shared}
    assert len(stage.names(POD_GROUP)) == 2


async def test_pods_of_other_schedulers_and_of_volcano_jobs_are_left_alone(
    stage: ControllerStage, client: Client
) -> None:
    other = pod("other")
    other["spec"]["schedulerName"] = "default-scheduler"
    await make(client, POD, other)
    await make(client, POD, pod("theirs", annotations={GROUP_NAME: "ray-a-pg"}))
    await stage.submit(job("train", [task("worker", 1)]))
    await stage.until(lambda: bool(stage.all(POD_GROUP)), "the group of the Job")
    await make(client, POD, pod("ours"))
    await stage.until(lambda: groups_of_pods(stage)["ours"], "a group")
    await stage.calm()
    assert len(stage.all(POD_GROUP)) == 2
    named = groups_of_pods(stage)
    assert (named["other"], named["theirs"]) == ("", "ray-a-pg")


async def test_each_write_has_a_reason(
    cluster: EmbeddedCluster, client: Client, stage: ControllerStage
) -> None:
    await stage.until(lambda: stage.still())
    writes: Counter[str] = Counter()
    cluster.store.storage.listen(lambda change: writes.update([f"{change.resource[1]} {change.type}"]))  # fmt: skip
    made = await web(client, replicas=20, minimum="20")
    await joined(stage)
    await stage.calm()
    assert minimum(stage, made) == 20
    assert writes == {
        "replicasets ADDED": 1,
        "pods ADDED": 20,
        "podgroups ADDED": 1,
        "pods MODIFIED": 20,
    }


async def test_several_schedulers(cluster: EmbeddedCluster, client: Client) -> None:
    found = ControllerStage(cluster, client)
    async with found.controller(scheduler_names=("volcano", "batch")):
        for name in ("volcano", "batch", "default-scheduler"):
            manifest = pod(name)
            manifest["spec"]["schedulerName"] = name
            await make(client, POD, manifest)
        await found.until(lambda: len(found.all(POD_GROUP)) == 2, "two groups")
        await found.calm()
        assert groups_of_pods(found)["default-scheduler"] == ""


async def test_annotations_of_the_owner_are_followed(
    stage: ControllerStage, client: Client
) -> None:
    made = await web(client, replicas=3, minimum="")
    await joined(stage)
    assert minimum(stage, made) == 1
    [group] = stage.all(POD_GROUP)
    await client.patch(
        POD_GROUP, group["metadata"]["name"], "default", {"metadata": {"labels": {"mine": "yes"}}}
    )
    changed = {MIN_MEMBER: "3", "volcano.sh/sla-waiting-time": "1h"}
    await client.patch(REPLICA_SET, "web", "default", {"metadata": {"annotations": changed}})
    await stage.until(lambda: minimum(stage, made) == 3, "the minimum")
    [group] = stage.all(POD_GROUP)
    assert group["metadata"]["labels"] == {"mine": "yes"}
    assert group["metadata"]["annotations"]["volcano.sh/sla-waiting-time"] == "1h"
    gone = dict.fromkeys(changed)
    await client.patch(REPLICA_SET, "web", "default", {"metadata": {"annotations": gone}})
    await stage.until(lambda: minimum(stage, made) == 1, "the minimum")
    assert "volcano.sh/sla-waiting-time" not in str(stage.all(POD_GROUP))


async def test_without_inheritance_they_are_not(cluster: EmbeddedCluster, client: Client) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller(inherit_owner_annotations=False):
        made = await web(client)
        await joined(stage)
        assert minimum(stage, made) == 1


async def test_scaled_to_nothing_and_back_no_pod_is_lost(
    stage: ControllerStage, client: Client
) -> None:
    made = await web(client, replicas=1, minimum="1")
    await joined(stage)
    await scale(client, 0)
    await client.delete(POD, "web-0", "default", grace=0)
    await stage.until(lambda: not stage.all(POD_GROUP), "no group")
    await scale(client, 1)
    await make(client, POD, pod("web-1", made))
    await joined(stage)
    assert groups_of_pods(stage) == {"web-1": f"podgroup-{made['metadata']['uid']}"}


async def test_a_group_that_is_deleted_is_made_again(
    stage: ControllerStage, client: Client
) -> None:
    await web(client)
    await joined(stage)
    [before] = stage.all(POD_GROUP)
    await client.delete(POD_GROUP, before["metadata"]["name"], "default")
    await stage.until(lambda: stage.names(POD_GROUP) == [before["metadata"]["name"]], "the group")
    assert stage.all(POD_GROUP)[0]["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_pod_whose_group_of_an_earlier_owner_goes_joins_the_present_one(
    stage: ControllerStage, client: Client
) -> None:
    made = await web(client)
    await joined(stage)
    old = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "spec": {"minMember": 1}}
    await make(client, POD_GROUP, old | {"metadata": {"name": "podgroup-old"}})
    await stage.calm(1.0)  # the controller, too, sees the PodGroup before the pod
    adopted = pod("adopted", made, annotations={GROUP_NAME: "podgroup-old"})
    await make(client, POD, adopted)
    await stage.calm()
    assert groups_of_pods(stage)["adopted"] == "podgroup-old"
    await client.delete(POD_GROUP, "podgroup-old", "default")
    await joined(stage)
    assert groups_of_pods(stage)["adopted"] == f"podgroup-{made['metadata']['uid']}"


async def test_groups_go_with_their_owner(stage: ControllerStage, client: Client) -> None:
    await web(client)
    await make(client, POD, pod("alone"))
    await joined(stage)
    assert len(stage.all(POD_GROUP)) == 2
    await client.delete(REPLICA_SET, "web", "default")
    await client.delete(POD, "alone", "default", grace=0)
    await stage.until(lambda: not stage.all(POD_GROUP), "no groups")


async def test_what_is_wrong_is_said_once_about_the_owner(
    stage: ControllerStage, client: Client
) -> None:
    made = await web(client, minimum="many")
    await joined(stage)
    await make(client, POD, pod("web-2", made))
    await joined(stage)
    await stage.until(lambda: reasons(stage) == ["InvalidAnnotation"], "an event")
    await stage.calm()
    [event] = stage.all(EVENT)
    about = event["involvedObject"]
    assert (about["kind"], about["name"], event["count"]) == ("ReplicaSet", "web", 1)


async def test_an_owner_of_any_kind_gets_its_group_and_its_events(
    stage: ControllerStage, client: Client
) -> None:
    """Its kind is not watched: its pods say what it wants."""
    cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster"}
    ray = cluster | {"metadata": {"name": "ray", "uid": "c0ffee"}}
    annotations = {MIN_MEMBER: "none", "scheduling.volcano.sh/queue-name": "research"}
    for name in ("ray-head", "ray-worker"):
        await make(client, POD, pod(name, ray, annotations=annotations))
    await joined(stage)
    await stage.until(lambda: reasons(stage) == ["InvalidAnnotation"], "an event")
    [group] = stage.all(POD_GROUP)
    assert group["metadata"]["name"] == "podgroup-c0ffee"
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (1, "research")
    [event] = stage.all(EVENT)
    about = event["involvedObject"]
    assert (about["apiVersion"], about["kind"], about["name"]) == ("ray.io/v1", "RayCluster", "ray")


async def test_many_pods_that_come_one_by_one_are_few_passes(
    cluster: EmbeddedCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal passes
        passes += 1
        return plan_group(*arguments, **named)

    monkeypatch.setattr("pumice.controller.worker.podgroups.plan_group", counted)
    stage = ControllerStage(cluster, client)
    async with stage.controller(controllers=frozenset({"pg-controller"})):
        await web(client, replicas=600)
        await joined(stage)
    assert passes < 60  # 103 without a pause before each


async def test_a_change_of_a_group_that_is_refused_holds_up_no_pods(
    stage: ControllerStage, client: Client
) -> None:
    made = await web(client)
    await joined(stage)
    bad = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "No Queue"}}}
    await client.patch(REPLICA_SET, "web", "default", bad)
    await stage.until(lambda: "FailedUpdate" in reasons(stage), "an event")
    await make(client, POD, pod("web-2", made))
    await joined(stage)
    assert len(set(groups_of_pods(stage).values())) == 1


async def test_a_group_that_was_refused_is_tried_again_when_a_queue_opens(
    stage: ControllerStage, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()
    create = Client.create

    async def closed(self: Client, kind: Kind, *args: Any, **options: Any) -> Raw:
        if kind == POD_GROUP and not refused.is_set():
            refused.set()
            args = ({"kind": "PodGroup", "metadata": {"name": "not valid"}}, *args[1:])
        return await create(self, kind, *args, **options)

    monkeypatch.setattr(Client, "create", closed)
    await web(client)
    await asyncio.wait_for(refused.wait(), 10)
    await stage.until(lambda: "FailedCreate" in reasons(stage), "an event")
    await make(client, QUEUE, queue("research", state="Open"))
    await joined(stage)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_the_end_is_the_same_if_the_controller_is_killed_at_a_write(
    cluster: EmbeddedCluster, after: bool
) -> None:
    expected, writes = await scaled(cluster, "undisturbed", None, after)
    assert writes == 7  # a group, three pods; the group goes; a group, a pod
    for number in range(writes):
        end, _ = await scaled(cluster, f"killed-{number}", number, after)
        assert end == expected, f"killed at write {number}"


async def scaled(
    cluster: EmbeddedCluster, namespace: str, last: int | None, after: bool
) -> tuple[list[Raw], int]:
    """What is left of a ReplicaSet that was scaled to nothing and back, and how many writes that took.

    Args:
        cluster: Where.
        namespace: A new namespace.
        last: The write at which the controller is killed.
        after: Whether that write is carried out.
    """
    playing = mortal_stage(cluster, namespace, last, after=after, of=MortalClient)
    async with playing as (stage, mortal):
        telling = asyncio.create_task(tell(stage))
        async with stage.controller(mortal, controllers=frozenset({"pg-controller"})):
            await mortal.until_dead_or(telling)
        if mortal.dead.is_set():
            async with stage.controller():
                await telling
        await telling
        [group], [alone] = stage.all(POD_GROUP), stage.all(POD)
        named = alone["metadata"]["annotations"][GROUP_NAME] == group["metadata"]["name"]
        return [group["spec"], {"named": named}], mortal.writes


async def tell(stage: ControllerStage) -> None:
    """Three pods, none, one."""
    manifest = owner(REPLICA_SET, minimum="3", replicas=3)
    made = await stage.client.create(REPLICA_SET, _at(stage, manifest), stage.namespace)
    for replicas in (3, 0, 1):
        patch = {"spec": {"replicas": replicas}}
        await stage.client.patch(REPLICA_SET, "web", stage.namespace, patch)
        for name in stage.names(POD):
            await stage.client.delete(POD, name, stage.namespace, grace=0)
        for number in range(replicas):
            await stage.client.create(POD, _at(stage, pod(f"web-{number}", made)), stage.namespace)
        await stage.until(lambda wanted=replicas: settled(stage, wanted), f"{replicas} pods")  # type: ignore[misc]


def settled(stage: ControllerStage, replicas: int) -> bool:
    """True if every pod names the one group, whose minimum is the number of pods."""
    minimums = [each["spec"]["minMember"] for each in stage.all(POD_GROUP)]
    named = set(groups_of_pods(stage).values())
    return minimums == [replicas] * bool(replicas) and named == set(stage.names(POD_GROUP))


def _at(stage: ControllerStage, manifest: Raw) -> Raw:
    return manifest | {"metadata": manifest["metadata"] | {"namespace": stage.namespace}}
