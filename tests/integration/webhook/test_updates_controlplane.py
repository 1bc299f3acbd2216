"""Updates as users make them: with kubectl or by its requests, against the API server that asks the webhook.

One webhook for all of them, in a namespace that had objects before anybody was asked.
"""

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from pumice.api.kinds import (
    CRON_JOB,
    HYPER_NODE,
    JOB_FLOW,
    JOB_TEMPLATE,
    POD_GROUP,
    QUEUE,
    Kind,
)
from tests.integration.webhook.serving import Raw
from tests.integration.webhook.stage import NAMES, JudgedNamespace, answering, forget
from tests.kit.builders import job, pod_group, queue
from tests.support.controlplane.cluster import ControlPlane

QUEUES = "queue.scheduling.volcano.sh"
CRON_JOBS = "cronjob.batch.volcano.sh"
APPLY = ("apply", "-f", "-")
SERVER_SIDE = ("apply", "--server-side", "-f", "-")
FORCED = ("apply", "--server-side", "--force-conflicts", "-f", "-")
REPLACE = ("replace", "-f", "-")
NAMESPACE = "test-updates"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judged(controlplane: ControlPlane) -> AsyncIterator[JudgedNamespace]:
    """A stage whose API server asks the webhook, with objects from before it did."""
    controlplane.add_namespace(NAMESPACE)
    stage = JudgedNamespace(controlplane, NAMESPACE)
    await stage.establish()
    await asyncio.to_thread(controlplane.apply, queue("default", state=""))
    for manifest in broken():  # by kubectl, which notes what it applied
        await stage.kubectl(*APPLY, obj=manifest)
    try:
        async with answering(stage, controlplane.kubeconfig):
            yield stage
    finally:
        await forget(stage)
        for kind, name in OLD:
            path = NAMES[kind].path(name, NAMESPACE)
            free = {"metadata": {"finalizers": None}}
            merge = "application/merge-patch+json"
            controlplane.request("PATCH", path, free, content_type=merge)
            controlplane.request("DELETE", path)
        controlplane.remove_namespace(NAMESPACE)


OLD = (
    ("vcjob", "old"),
    (QUEUES, "broken"),
    ("podgroup", "stale"),
    (CRON_JOBS, "never"),
    ("jobflow", "lost"),
    ("jobtemplate", "twice"),
    ("hypernode", "unread"),
)


def broken() -> list[Raw]:
    """Objects that the CRDs take and rules refuse."""
    old = job("old", namespace=NAMESPACE, queue="gone", plugins={"nonsense": []}, minAvailable=9)
    task = old["spec"]["tasks"][0]
    old["spec"]["tasks"].append(copy.deepcopy(task))  # of the same name
    old["spec"]["policies"] = [{"event": "PodFailed", "action": "Explode"}]
    annotations = {"volcano.sh/hierarchy": "root/a/b", "volcano.sh/hierarchy-weights": "1"}
    limits: Raw = {"capability": {"cpu": "1"}, "guarantee": {"resource": {"cpu": "4"}}}
    bad = queue("broken", state="", annotations=annotations, **limits)
    del bad["status"]
    both = {"highestTierAllowed": 1, "highestTierName": "rack"}
    group = pod_group("stale", namespace=NAMESPACE, queue="gone", networkTopology=both)
    del group["metadata"]["uid"]
    never = manifest_of(CRON_JOB, "never", schedule="0 25 * * *", jobTemplate={"spec": {}})
    lost = manifest_of(JOB_FLOW, "lost", flows=[{"name": "a", "dependsOn": {"targets": ["b"]}}])
    twice = manifest_of(JOB_TEMPLATE, "twice", tasks=copy.deepcopy(old["spec"]["tasks"]))
    pattern = {"regexMatch": {"pattern": "rack-(1"}}
    unread = manifest_of(
        HYPER_NODE, "unread", tier=1, members=[{"type": "Node", "selector": pattern}]
    )
    found = [old, bad, group, never, lost, twice, unread]
    for manifest in found:
        manifest["metadata"]["finalizers"] = ["pumice.dev/test"]
    return found


def manifest_of(kind: Kind, name: str, **spec: Any) -> Raw:
    metadata = {"name": name, **({"namespace": NAMESPACE} if kind.namespaced else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def of_every_kind() -> list[tuple[str, Raw]]:
    """A manifest of each kind that admission judges, of which much is left to defaults."""
    spec: Raw = undefaulted("again")["spec"]
    group = manifest_of(POD_GROUP, "again", networkTopology={"highestTierAllowed": 1})
    group["spec"]["subGroupPolicy"] = [{"name": "a"}, {"name": "b", "networkTopology": {}}]
    weights = {"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "1/2"}
    lab = manifest_of(QUEUE, "again", capability={"cpu": "4000m", "memory": "4096Mi"})
    lab["metadata"]["annotations"] = weights
    steps: list[Raw] = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    steps[1]["patch"] = {"jobSpec": {"tasks": spec["tasks"]}}
    node = {"type": "Node", "selector": {"exactMatch": {"name": "node-1"}}}
    return [
        ("vcjob", undefaulted("again-of-its-kind")),
        (QUEUES, lab),
        ("podgroup", group),
        (CRON_JOBS, manifest_of(CRON_JOB, "again", schedule="@daily", jobTemplate={"spec": spec})),
        ("jobflow", manifest_of(JOB_FLOW, "again", flows=steps)),
        ("jobtemplate", manifest_of(JOB_TEMPLATE, "again", **spec)),
        ("hypernode", manifest_of(HYPER_NODE, "again", tier=1, members=[node])),
    ]


def container(**fields: Any) -> Raw:
    return {"name": "main", "image": "busybox:1.36", **fields}


def undefaulted(name: str) -> Raw:
    """A Job of which nearly everything is left to defaults."""
    manifest = job(name, namespace=NAMESPACE)
    pods = {
        "hostNetwork": True,
        "containers": [container(resources={"requests": {"cpu": "1000m"}})],
    }
    manifest["spec"] = {
        "plugins": {"tensorflow": [], "task-topology": ["--affinity=[[default0,ps]]"]},
        "tasks": [
            {"replicas": 1, "template": {"spec": pods}},
            {"name": "ps", "replicas": 2, "template": {"spec": {"containers": [container()]}}},
        ],
    }
    return manifest


def complete_tasks(manifest: Raw) -> Raw:
    """The same with nothing left to default in its tasks, which kubectl sends as one value."""
    manifest = copy.deepcopy(manifest)
    first, second = manifest["spec"]["tasks"]
    first |= {"name": "default0", "minAvailable": 1, "maxRetry": 3}
    first["template"]["spec"]["dnsPolicy"] = "ClusterFirstWithHostNet"
    second |= {"minAvailable": 2, "maxRetry": 3}
    return manifest


async def state(stage: JudgedNamespace, kind: str, name: str) -> tuple[str, Raw]:
    """Resource version and spec of an object."""
    found = await stage.get(kind, name)
    return found["metadata"]["resourceVersion"], found["spec"]


async def test_a_job_applied_again_is_no_change_by_any_client(judged: JudgedNamespace) -> None:
    manifest = undefaulted("again")
    await judged.kubectl(*APPLY, obj=manifest)
    stored = await judged.get("vcjob", "again")
    spec = stored["spec"]
    assert [task["name"] for task in spec["tasks"]] == ["default0", "ps"]
    assert spec["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert (spec["minAvailable"], spec["maxRetry"], spec["queue"]) == (3, 3, "default")
    assert spec["schedulerName"] == "volcano"
    assert spec["plugins"]["svc"] == []
    assert "volcano.sh/task-topology-affinity" in stored["metadata"]["annotations"]

    await judged.kubectl(*APPLY, obj=manifest)
    assert await judged.get("vcjob", "again") == stored
    # The first replacement takes kubectl's own annotation away, and nothing else.
    for arguments in (REPLACE, REPLACE, FORCED, FORCED, SERVER_SIDE):
        version = (await state(judged, "vcjob", "again"))[0]
        await judged.kubectl(*arguments, obj=manifest)
        found = await judged.get("vcjob", "again")
        assert found["spec"] == spec, arguments
        assert found["metadata"]["generation"] == 1, arguments
        assert "volcano.sh/task-topology-affinity" in found["metadata"]["annotations"], arguments
        settled = found["metadata"]["resourceVersion"] == version
        assert settled or arguments in (REPLACE, FORCED), arguments
    version = (await state(judged, "vcjob", "again"))[0]
    for arguments in (FORCED, SERVER_SIDE):
        await judged.kubectl(*arguments, obj=manifest)
        assert (await state(judged, "vcjob", "again"))[0] == version, arguments


async def test_server_side_apply_needs_no_force_for_what_admission_wrote(
    judged: JudgedNamespace,
) -> None:
    manifest = undefaulted("server-side")
    await judged.kubectl(*SERVER_SIDE, obj=manifest)
    stored = await state(judged, "vcjob", "server-side")
    await judged.kubectl(*SERVER_SIDE, obj=manifest)
    await judged.kubectl(*SERVER_SIDE, obj=manifest)
    assert await state(judged, "vcjob", "server-side") == stored

    # Nobody set minAvailable, so it is what the tasks need, before as after.
    manifest["spec"]["tasks"][1]["replicas"] = 1
    await judged.kubectl(*SERVER_SIDE, obj=manifest)
    _, spec = await state(judged, "vcjob", "server-side")
    assert (spec["tasks"][1]["minAvailable"], spec["minAvailable"]) == (1, 2)


async def test_kubectl_says_unchanged_where_no_list_lacks_a_default(
    judged: JudgedNamespace,
) -> None:
    group = pod_group("gang", namespace=NAMESPACE)
    del group["metadata"]["uid"]
    lab = queue("lab", state="")
    del lab["spec"]["weight"], lab["status"]
    train = complete_tasks(undefaulted("complete"))
    try:
        for kind, manifest in (("vcjob", train), (QUEUES, lab), ("podgroup", group)):
            name = manifest["metadata"]["name"]
            text = await judged.kubectl(*APPLY, obj=manifest)
            assert text.strip().endswith("created")
            stored = await judged.get(kind, name)
            text = await judged.kubectl(*APPLY, obj=manifest)
            assert text.strip().endswith("unchanged"), kind
            await judged.kubectl(*FORCED, obj=manifest)
            version = (await state(judged, kind, name))[0]
            for arguments in (SERVER_SIDE, FORCED):
                await judged.kubectl(*arguments, obj=manifest)
                assert await state(judged, kind, name) == (version, stored["spec"]), arguments
            await judged.kubectl(*REPLACE, obj=manifest)
            assert (await state(judged, kind, name))[1] == stored["spec"]
        assert (await state(judged, QUEUES, "lab"))[1]["reclaimable"] is True
    finally:
        await judged.remove(QUEUES, "lab")


async def settled(stage: JudgedNamespace, kind: str, name: str, obj: Raw, *arguments: str) -> Raw:
    """The stored object, which doing a thing again has not changed."""
    await stage.kubectl(*arguments, obj=obj)
    stored = await stage.get(kind, name)
    await stage.kubectl(*arguments, obj=obj)
    assert await stage.get(kind, name) == stored, (kind, arguments)
    return stored


@pytest.mark.parametrize(("kind", "manifest"), of_every_kind(), ids=lambda each: str(each)[:12])
async def test_every_kind_is_the_same_when_applied_again(
    judged: JudgedNamespace, kind: str, manifest: Raw
) -> None:
    name = manifest["metadata"]["name"]
    try:
        created = await settled(judged, kind, name, manifest, *APPLY)
        assert "+" not in await judged.kubectl("diff", "-f", "-", obj=manifest, check=False)
        live = await settled(judged, kind, name, manifest, *REPLACE)
        assert live["spec"] == created["spec"]
        live = await settled(
            judged, kind, name, live, *REPLACE
        )  # as `kubectl edit` without an edit
        stored = await judged.server_side(kind, manifest, force="true")
        assert await judged.server_side(kind, manifest, force="true") == stored
        assert await judged.get(kind, name) == stored
        await judged.kubectl("delete", kind, name)

        # A tool that looks for drift before it applies.
        stored = await judged.server_side(kind, manifest)
        assert await judged.server_side(kind, manifest) == stored
        assert stored["spec"] == created["spec"]
        assert await judged.server_side(kind, manifest, dryRun="All") == stored
        assert await judged.get(kind, name) == stored
    finally:
        await judged.remove(kind, name)


async def test_a_job_is_scaled_by_its_manifest_and_by_patches(judged: JudgedNamespace) -> None:
    manifest = undefaulted("scaled")
    await judged.kubectl(*APPLY, obj=manifest)
    for replicas in (5, 1):
        manifest["spec"]["tasks"][1]["replicas"] = replicas
        await judged.kubectl(*APPLY, obj=manifest)
        _, spec = await state(judged, "vcjob", "scaled")
        assert spec["tasks"][1]["minAvailable"] == replicas
        assert spec["minAvailable"] == replicas + 1

    patch = '[{"op": "replace", "path": "/spec/tasks/1/replicas", "value": 4}]'
    await judged.kubectl("patch", "vcjob", "scaled", "--type=json", "-p", patch)
    _, spec = await state(judged, "vcjob", "scaled")
    assert (spec["tasks"][1]["replicas"], spec["minAvailable"]) == (4, 2)
    low = patch.replace("4", "0")
    text = await judged.refused("patch", "vcjob", "scaled", "--type=json", "-p", low)
    assert (
        "spec.tasks[1].minAvailable: 'minAvailable' must be <= 'replicas' in task (0), found 1"
        in text
    )
    await judged.kubectl(
        "patch", "vcjob", "scaled", "--type=merge", "-p", '{"spec":{"minAvailable":1}}'
    )
    # What somebody has set is nobody's default any more.
    manifest["spec"]["tasks"][1]["replicas"] = 6
    text = await judged.kubectl(*APPLY, obj=manifest)
    assert (
        "[JOB-MINAVAIL-SUM]" not in text
    )  # each task needs all its pods, so only the Job's counts
    assert (await state(judged, "vcjob", "scaled"))[1]["minAvailable"] == 1


async def test_a_divided_task_is_scaled_by_partitions(judged: JudgedNamespace) -> None:
    manifest = job("divided", namespace=NAMESPACE)
    (task,) = manifest["spec"]["tasks"]
    task |= {"replicas": 4, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}
    await judged.kubectl(*APPLY, obj=manifest)
    task["replicas"] = 6
    text = await judged.refused(*APPLY, obj=manifest)
    assert "2 * 2 = 4, found 6; with totalPartitions: 3 it would be [PART-PRODUCT]" in text
    task["partitionPolicy"]["totalPartitions"] = 3
    await judged.kubectl(*APPLY, obj=manifest)
    task["partitionPolicy"]["partitionSize"] = 3
    text = await judged.refused(*APPLY, obj=manifest)
    assert (
        "partitionPolicy.partitionSize: job updates may not change fields other than priorityClassName and counts, found 2 → 3"
        in text
    )


async def test_every_frozen_field_that_changes_is_named(judged: JudgedNamespace) -> None:
    manifest = undefaulted("frozen")
    await judged.kubectl(*APPLY, obj=manifest)
    manifest["spec"] |= {"maxRetry": 7, "ttlSecondsAfterFinished": 60}
    manifest["spec"]["plugins"]["tensorflow"] = ["--port=5000"]
    first, second = manifest["spec"]["tasks"]
    first["name"] = "chief"
    second["template"]["spec"]["containers"][0]["image"] = "busybox:1.37"
    for arguments in (APPLY, REPLACE, FORCED):
        text = await judged.refused(*arguments, obj=manifest)
        for line in (
            "spec.maxRetry: job updates may not change fields other than priorityClassName and counts, found 3 → 7 [JOB-IMMUTABLE]",
            'spec.plugins.tensorflow: job updates may not change fields other than priorityClassName and counts, found [] → ["--port=5000"] [JOB-IMMUTABLE]',
            'spec.tasks[0].name: job updates may not change fields other than priorityClassName and counts, found "default0" → "chief" [JOB-IMMUTABLE]',
            'containers[0].image: job updates may not change fields other than priorityClassName and counts, found "busybox:1.36" → "busybox:1.37"',
            "spec.ttlSecondsAfterFinished: job updates may not change fields other than priorityClassName and counts, found nothing → 60; counts are minAvailable",
        ):
            assert line in text, arguments


async def test_old_objects_that_break_newer_rules_stay_repairable(judged: JudgedNamespace) -> None:
    for manifest in broken():
        fresh = copy.deepcopy(manifest)
        fresh["metadata"]["name"] += "-new"
        await judged.refused("create", "--dry-run=server", "-f", "-", obj=fresh)
        text = await judged.kubectl(*APPLY, obj=manifest)
        assert text.strip().endswith("unchanged"), text
        await judged.kubectl(*FORCED, obj=manifest)
        await judged.kubectl(*REPLACE, obj=manifest)
    await _change(judged)
    await _remove(judged)


async def _change(stage: JudgedNamespace) -> None:
    """Metadata, counts and weights: what users change about old objects."""
    for kind, name in OLD:
        await stage.merge(kind, name, {"metadata": {"labels": {"team": "vision"}}})
        await stage.merge(kind, name, {"metadata": {"annotations": {"note": "kept"}}})

    def scaled(replicas: int) -> tuple[str, ...]:
        patch = f'[{{"op": "replace", "path": "/spec/tasks/0/replicas", "value": {replicas}}}]'
        return ("patch", "vcjob", "old", "--type=json", "-p", patch)

    await stage.kubectl(*scaled(4))
    text = await stage.refused(*scaled(3))
    assert "job 'minAvailable' must not be greater than total replicas (4), found 9" in text
    assert text.count("[JOB-") == 1
    fewer = '{"spec":{"minAvailable":8}}'
    await stage.kubectl("patch", "vcjob", "old", "--type=merge", "-p", fewer)
    await stage.kubectl("patch", QUEUES, "broken", "--type=merge", "-p", '{"spec":{"weight":3}}')
    await stage.kubectl(
        "patch", "podgroup", "stale", "--type=merge", "-p", '{"spec":{"minMember":2}}'
    )
    for kind, name in (("vcjob", "old"), ("podgroup", "stale")):
        other = '{"spec":{"queue":"lost"}}'
        await stage.refused("patch", kind, name, "--type=merge", "-p", other)


async def _remove(stage: JudgedNamespace) -> None:
    """Finalizers go before the deletion, and while it goes on."""
    for kind, name in OLD:
        await stage.merge(kind, name, {"metadata": {"finalizers": ["pumice.dev/other"]}})
        await stage.remove(kind, name)
        assert "deletionTimestamp" in (await stage.get(kind, name))["metadata"]
        await stage.merge(kind, name, {"metadata": {"finalizers": None}})
        assert "NotFound" in await stage.kubectl("get", kind, name, check=False)
