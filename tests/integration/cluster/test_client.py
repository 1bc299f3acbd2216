"""The client against the embedded API server: every verb once, as its users use it."""

import asyncio
from pathlib import Path

import pytest

from pumice.api.kinds import CONFIG_MAP, NODE, POD
from pumice.cluster.client import JSON_PATCH, MERGE_PATCH, Client, Object
from pumice.cluster.errors import AlreadyExists, Conflict, Gone, Invalid, NotFound
from pumice.embedded import EmbeddedCluster
from tests.kit.builders import bare_pod


def config_map(name: str, **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"name": name}},
        "data": data,
    }


async def test_an_object_lives(client: Client) -> None:
    created = await client.create(CONFIG_MAP, config_map("a", x="1"))
    assert created["metadata"]["uid"]
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAP, config_map("a"))
    updated = await client.update(CONFIG_MAP, {**created, "data": {"x": "2"}})
    with pytest.raises(Conflict):
        await client.update(CONFIG_MAP, {**created, "data": {"x": "3"}})
    assert (await client.get(CONFIG_MAP, "a", "default")) == updated
    await client.delete(CONFIG_MAP, "a", "default", uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, "a", "default")


async def test_deleting_another_incarnation_conflicts(client: Client) -> None:
    await client.create(CONFIG_MAP, config_map("a"))
    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAP, "a", "default", uid="another")


async def test_a_dry_run_leaves_nothing(client: Client) -> None:
    await client.create(CONFIG_MAP, config_map("a"), dry_run=True)
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, "a", "default")


async def test_both_patches(client: Client) -> None:
    await client.create(CONFIG_MAP, config_map("a", x="1"))
    name = ("a", "default")
    merged = await client.patch(CONFIG_MAP, *name, {"data": {"y": "2"}}, content_type=MERGE_PATCH)
    assert merged["data"] == {"x": "1", "y": "2"}
    operations = [{"op": "replace", "path": "/data/x", "value": "3"}]
    changed = await client.patch(CONFIG_MAP, *name, operations, content_type=JSON_PATCH)
    assert changed["data"] == {"x": "3", "y": "2"}


async def test_a_failed_test_operation_is_invalid(client: Client) -> None:
    created = await client.create(CONFIG_MAP, config_map("a", x="1"))
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": "0"}
    with pytest.raises(Invalid):
        await client.patch(CONFIG_MAP, "a", "default", [test], content_type=JSON_PATCH)
    assert (await client.get(CONFIG_MAP, "a", "default")) == created


async def test_lists_are_whole_and_selected(client: Client) -> None:
    for number in range(7):
        await client.create(CONFIG_MAP, config_map(f"c{number}"))
    pages = [page async for page in client.collection(CONFIG_MAP, "default").bodies(3)]
    assert len(pages) == 3
    everything = await client.list(CONFIG_MAP, "default")
    assert len(everything["items"]) == 7
    one = await client.list(CONFIG_MAP, label_selector="name in (c3,c9)")
    assert [item["metadata"]["name"] for item in one["items"]] == ["c3"]
    other = await client.list(CONFIG_MAP, "default", field_selector="metadata.name=c5")
    assert [item["metadata"]["name"] for item in other["items"]] == ["c5"]


async def test_pods_are_bound_and_their_status_written(
    client: Client, cluster: EmbeddedCluster
) -> None:
    cluster.add_node("n1")
    created = await client.create(POD, bare_pod("p"))
    await client.bind("default", "p", "n1", created["metadata"]["uid"])
    with pytest.raises(Conflict):
        await client.bind("default", "p", "n1")
    bound = await client.get(POD, "p", "default")
    assert bound["spec"]["nodeName"] == "n1"
    change = {"status": {"message": "written"}}
    written = await client.patch(POD, "p", "default", change, subresource="status")
    assert written["status"]["message"] == "written"
    await client.evict("default", "p", uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.evict("default", "other")


async def test_invalid_objects_name_their_fields(client: Client) -> None:
    with pytest.raises(Invalid) as caught:
        await client.create(CONFIG_MAP, config_map("Not a name!"))
    assert caught.value.causes[0]["field"] == "metadata.name"


async def test_watching_follows_changes(client: Client) -> None:
    version = (await client.list(CONFIG_MAP))["metadata"]["resourceVersion"]
    seen: list[str] = []

    async def follow() -> None:
        async for event, _ in client.collection(CONFIG_MAP).watch(version):
            seen.append(event)
            if event == "DELETED":
                return

    following = asyncio.create_task(follow())
    created = await client.create(CONFIG_MAP, config_map("a"))
    await client.update(CONFIG_MAP, {**created, "data": {"x": "2"}})
    await client.delete(CONFIG_MAP, "a", "default")
    async with asyncio.timeout(60):
        await following
    assert [event for event in seen if event != "BOOKMARK"] == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_watch_ends_when_its_time_is_over(client: Client) -> None:
    version = (await client.list(NODE))["metadata"]["resourceVersion"]
    async with asyncio.timeout(60):
        events = [event async for event, _ in client.collection(NODE).watch(version, 1)]
    assert set(events) <= {"BOOKMARK"}


async def test_a_forgotten_version_is_gone(client: Client) -> None:
    version = (await client.list(CONFIG_MAP))["metadata"]["resourceVersion"]
    for number in range(80):
        await client.create(CONFIG_MAP, config_map(f"c{number}"))
    with pytest.raises(Gone):
        async for _ in client.collection(CONFIG_MAP).watch(version):
            pass


async def test_kubeconfigs_of_the_embedded_server_work(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    await asyncio.to_thread(file.write_text, cluster.kubeconfig("team"))
    async with Client.connect(file) as client:
        assert (await client.version())["gitVersion"].startswith("v1.")
        assert client.connection.namespace == "team"


async def test_writes_may_be_answered_with_the_metadata(client: Client) -> None:
    made = await client.create(CONFIG_MAP, config_map("a", k="v"), metadata_only=True)
    assert made["kind"] == "PartialObjectMetadata"
    assert (made["metadata"]["name"], "data" in made) == ("a", False)
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAP, config_map("a"), metadata_only=True)
    changed = await client.patch(
        CONFIG_MAP, "a", "default", {"data": {"k": "w"}}, metadata_only=True
    )
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    assert (await client.get(CONFIG_MAP, "a", "default"))["data"] == {"k": "w"}
    await client.delete(CONFIG_MAP, "a", "default", metadata_only=True)
    with pytest.raises(NotFound):
        await client.delete(CONFIG_MAP, "a", "default", metadata_only=True)
