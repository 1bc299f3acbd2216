"""The official Python client, unchanged, against the embedded server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import aio
from kubernetes.aio import dynamic
from kubernetes.aio.client.exceptions import ApiException

from pumice.embedded import EmbeddedCluster
from tests.builders import job, queue
from tests.kit.waiting import until

# The client's own annotations are partly missing and partly too narrow.
client: Any = aio.client
config: Any = aio.config
watch: Any = aio.watch
dynamic_client: Any = dynamic.DynamicClient


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[Any]:
    async with await config.new_client_from_config(str(kubeconfig)) as found:
        yield found


def pod(name: str = "p", **metadata: Any) -> Any:
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, **metadata),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")]),
    )


async def test_pods_are_created_listed_patched_and_deleted(api: Any) -> None:
    core = client.CoreV1Api(api)

    made = await core.create_namespaced_pod("default", pod(labels={"a": "b"}))
    listed = await core.list_namespaced_pod("default", label_selector="a=b")
    patched = await core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"a": "c"}}})
    await core.delete_namespaced_pod("p", "default")

    assert made.status.phase == "Pending"
    assert made.metadata.creation_timestamp.year >= 2024
    assert [each.metadata.name for each in listed.items] == ["p"]
    assert patched.metadata.labels == {"a": "c"}
    with pytest.raises(ApiException) as caught:
        await core.read_namespaced_pod("p", "default")
    assert caught.value.status == 404
    assert json.loads(caught.value.body or "")["reason"] == "NotFound"


async def test_a_pod_is_bound_runs_and_is_evicted(api: Any) -> None:
    core = client.CoreV1Api(api)
    await core.create_namespaced_pod("default", pod())
    target = client.V1ObjectReference(kind="Node", name="node1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target)

    # The generated method cannot read its own answer: a Status, which is not the Binding it expects.
    await core.create_namespaced_pod_binding_without_preload_content("p", "default", binding)
    phases = []
    async with watch.Watch() as stream:
        async for event in stream.stream(core.list_namespaced_pod, "default", timeout_seconds=60):
            phases.append(event["object"].status.phase)
            if phases[-1] == "Running":
                break
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p"))
    await core.create_namespaced_pod_eviction("p", "default", eviction)

    async def evicted() -> bool:
        return not (await core.list_namespaced_pod("default")).items

    await until(evicted)
    assert phases[-1] == "Running"


async def test_custom_objects(api: Any) -> None:
    custom = client.CustomObjectsApi(api)
    where = ("batch.volcano.sh", "v1alpha1", "default", "jobs")

    made = await custom.create_namespaced_custom_object(*where, job("j", uid=""))
    made["status"] = {"running": 1}
    status = await custom.replace_namespaced_custom_object_status(*where, "j", made)
    with pytest.raises(ApiException) as caught:
        await custom.create_namespaced_custom_object(*where, job("bad", minAvailable=-1))

    assert made["spec"]["queue"] == "default"
    assert status["status"] == {"running": 1}
    body = json.loads(caught.value.body or "")
    assert (caught.value.status, body["details"]["causes"][0]["field"]) == (
        422,
        "spec.minAvailable",
    )


async def test_leases_are_taken_and_lost(api: Any) -> None:
    leases = client.CoordinationV1Api(api)
    lease = client.V1Lease(
        metadata=client.V1ObjectMeta(name="leader"),
        spec=client.V1LeaseSpec(holder_identity="a", lease_duration_seconds=15),
    )

    mine = await leases.create_namespaced_lease("default", lease)
    mine.spec.holder_identity = "b"
    await leases.replace_namespaced_lease("leader", "default", mine)
    with pytest.raises(ApiException) as caught:
        await leases.replace_namespaced_lease("leader", "default", mine)

    assert caught.value.status == 409


async def test_the_dynamic_client_finds_kinds_by_discovery(
    api: Any, cluster: EmbeddedCluster
) -> None:
    cluster.store.create(queue("q"))
    found_kinds = await dynamic_client(api)

    queues = await found_kinds.resources.get(
        api_version="scheduling.volcano.sh/v1beta1", kind="Queue"
    )
    found = await found_kinds.get(queues, name="q")

    assert found.metadata.name == "q"
    assert found.spec.weight == 1


async def test_the_version_of_the_server(api: Any) -> None:
    version = await client.VersionApi(api).get_code()

    assert (version.major, version.minor) == ("1", "36")
