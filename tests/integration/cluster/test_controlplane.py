"""What this package relies on, against the real kube-apiserver: the embedded one may be too kind."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP, EVENT, LEASE, NODE, POD
from pumice.api.pods import Pod
from pumice.cluster.cache import WatchCache, wait_synced
from pumice.cluster.client import JSON_PATCH, Client, Object
from pumice.cluster.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from pumice.cluster.events import EventRecorder, Reference
from pumice.cluster.leader import LeaderElection
from tests.kit.builders import bare_pod
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane


@pytest.fixture
async def real(controlplane: ControlPlane) -> AsyncIterator[Client]:
    async with Client.connect(controlplane.kubeconfig) as client:
        yield client


def config_map(namespace: str, name: str = "a", **data: str) -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


async def test_refusals_have_their_classes(real: Client, namespace: str) -> None:
    created = await real.create(CONFIG_MAP, config_map(namespace, x="1"))
    with pytest.raises(AlreadyExists):
        await real.create(CONFIG_MAP, config_map(namespace))
    await real.update(CONFIG_MAP, {**created, "data": {"x": "2"}})
    with pytest.raises(Conflict):
        await real.update(CONFIG_MAP, created)
    with pytest.raises(Conflict):
        await real.delete(CONFIG_MAP, "a", namespace, uid="00000000-0000-0000-0000-000000000000")
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": "0"}
    with pytest.raises(Invalid):
        await real.patch(CONFIG_MAP, "a", namespace, [test], content_type=JSON_PATCH)
    with pytest.raises(Invalid) as caught:
        await real.create(CONFIG_MAP, config_map(namespace, "Not a name!"))
    assert caught.value.causes[0]["field"] == "metadata.name"
    with pytest.raises(NotFound):
        await real.get(CONFIG_MAP, "b", namespace)


async def test_writes_may_be_answered_with_the_metadata(real: Client, namespace: str) -> None:
    """Refusals are answered as always: they have no such form."""
    made = await real.create(CONFIG_MAP, config_map(namespace, k="v"), metadata_only=True)
    assert (made["kind"], "data" in made) == ("PartialObjectMetadata", False)
    with pytest.raises(AlreadyExists, match='"a" already exists'):
        await real.create(CONFIG_MAP, config_map(namespace), metadata_only=True)
    changed = await real.patch(CONFIG_MAP, "a", namespace, {"data": {"k": "w"}}, metadata_only=True)
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    with pytest.raises(Conflict):
        await real.patch(CONFIG_MAP, "a", namespace, old | {"data": {}}, metadata_only=True)
    await real.delete(CONFIG_MAP, "a", namespace, metadata_only=True)
    with pytest.raises(NotFound):
        await real.delete(CONFIG_MAP, "a", namespace, metadata_only=True)


async def test_an_unknown_user_is_refused(controlplane: ControlPlane) -> None:
    stranger = controlplane.kubeconfig_for_token("nonsense")
    async with Client.connect(stranger) as client:
        with pytest.raises(ApiError, match="401 Unauthorized"):
            await client.list(NODE)


async def test_the_api_server_takes_whom_the_user_acts_for(
    controlplane: ControlPlane, tmp_path: Path
) -> None:
    extra = {"example.org/scopes %": ["a", "b"]}
    acting = {"as": "jane", "as-uid": "7", "as-groups": ["dev"], "as-user-extra": extra}
    config = json.loads(controlplane.kubeconfig.read_text())
    config["users"][0]["user"] |= acting
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with Client.connect(file) as client:
        answer = await client.raw("POST", f"/apis/{body['apiVersion']}/selfsubjectreviews", body)
    found = json.loads(answer)["status"]["userInfo"]
    groups = ["dev", "system:authenticated"]
    assert found == {"username": "jane", "uid": "7", "groups": groups, "extra": extra}


async def test_a_cache_follows_pods_through_binding_and_eviction(
    real: Client, namespace: str, add_node: Any
) -> None:
    node = await asyncio.to_thread(add_node, f"node-{namespace}")
    cache = WatchCache(real, POD, Pod, namespace=namespace)
    cache.reflector.page_size = 4
    for number in range(10):
        await real.create(
            POD, bare_pod(f"p{number}", namespace=namespace, schedulerName="not-running")
        )
    cache.index("node", lambda each: [each.spec.node_name or ""])
    following = asyncio.create_task(cache.run())
    async with asyncio.timeout(60):
        await wait_synced(cache)
    assert [each.metadata.name for each in cache.values()] == [f"p{n}" for n in range(10)]
    await real.bind(namespace, "p3", node)
    with pytest.raises(Conflict):
        await real.bind(namespace, "p3", node)
    await until(lambda: [each.metadata.name for each in cache.indexed("node", node)] == ["p3"])
    await real.evict(namespace, "p4")
    await until(lambda: cache.get("p4", namespace) is None)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_leases_and_events_are_accepted(real: Client, namespace: str) -> None:
    election = LeaderElection(real, "leader", namespace, "me")
    working = asyncio.create_task(election.run(lambda: asyncio.sleep(60)))
    await until(lambda: election.leading)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    spec = (await real.get(LEASE, "leader", namespace))["spec"]
    assert (spec.get("holderIdentity"), spec["leaseTransitions"]) == ("", 0)

    dropped: list[str] = []
    recorder = EventRecorder(real, "pumice-test", instance="here", on_drop=dropped.append)
    about = Reference(POD, "thing", namespace, "u-1")
    cluster_wide = Reference(NODE, f"node-of-{namespace}")
    for _ in range(2):
        recorder.record(about, "Warning", "Waiting", "for room")
        recorder.record(cluster_wide, "Normal", "Seen", "here")
        await recorder.flush()
    assert not dropped
    for where, reference in ((namespace, about), ("default", cluster_wide)):
        selector = f"involvedObject.name={reference.name}"
        listed = await real.list(EVENT, where, field_selector=selector)
        assert [item["count"] for item in listed["items"]] == [2]


@pytest.mark.parametrize("page_size", [1, 500])
async def test_a_quiet_kind_catches_up_with_what_others_wrote(
    real: Client, namespace: str, page_size: int
) -> None:
    """A large one by the bookmark that ends a short watch, a small one by a list."""
    for name in ("a", "b"):
        await real.create(LEASE, lease(namespace, name))
    cache: WatchCache[Object] = WatchCache(real, LEASE, dict, namespace=namespace)
    cache.reflector.page_size = page_size
    following = asyncio.create_task(cache.run())
    async with asyncio.timeout(60):
        await wait_synced(cache)
        written = await real.create(CONFIG_MAP, config_map(namespace))
        await cache.reflector.catch_up()
    assert int(cache.reflector.resource_version) >= int(written["metadata"]["resourceVersion"])
    assert cache.reflector.relists == (1 if page_size == 1 else 2)
    assert len(cache) == 2
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def lease(namespace: str, name: str) -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": meta}
