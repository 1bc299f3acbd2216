"""Simulated nodes: what becomes of a bound pod."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import EVENT, NODE, POD
from pumice.embedded import EmbeddedCluster, NodeTimings
from pumice.embedded.storage import StoredWrite
from tests.kit.waiting import until
from tests.unit.embedded.support import pod


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    timings = NodeTimings(start=0.01, stop=0.01)
    async with EmbeddedCluster(timings=timings) as found:
        found.add_node("node", cpu="4", memory="8Gi", labels={"a": "b"})
        yield found


def bound(name: str = "p", **annotations: str) -> dict[str, Any]:
    obj = pod(name, nodeName="node")
    obj["metadata"]["annotations"] = {
        {"duration": keys.RUN_DURATION, "code": keys.EXIT_CODE}[key]: value
        for key, value in annotations.items()
    }
    return obj


async def status(cluster: EmbeddedCluster, phase: str, name: str = "p") -> dict[str, Any]:
    """The pod's status once it has reached a phase."""

    def stored() -> dict[str, Any]:
        found = cluster.store.get(POD, name, "default")
        assert found is not None
        return dict(found["status"])

    await until(lambda: stored()["phase"] == phase, phase, around=stored)
    return stored()


async def gone(cluster: EmbeddedCluster, name: str = "p") -> None:
    await until(lambda: cluster.store.get(POD, name, "default") is None, f"{name} is gone")


def ready(status: dict[str, Any]) -> str:
    [condition] = [each for each in status["conditions"] if each["type"] == "Ready"]
    return str(condition["status"])


async def test_a_node_is_ready_and_has_what_was_asked_for(cluster: EmbeddedCluster) -> None:
    node = cluster.store.get(NODE, "node")

    assert node is not None
    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
    assert node["metadata"]["labels"]["a"] == "b"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node"
    assert ready(node["status"]) == "True"
    assert "taints" not in node["spec"]


async def test_nodes_can_have_taints_and_further_resources(cluster: EmbeddedCluster) -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}

    node = cluster.add_node("gpu", taints=[taint], resources={"nvidia.com/gpu": 8})

    assert node["spec"]["taints"] == [taint]
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "8"


async def test_a_bound_pod_runs_until_it_is_deleted(cluster: EmbeddedCluster) -> None:
    cluster.store.create(bound())

    found = await status(cluster, "Running")

    assert ready(found) == "True"
    assert found["podIP"].startswith("10.")
    [container] = found["containerStatuses"]
    assert (container["ready"], list(container["state"])) == (True, ["running"])
    cluster.store.delete(POD, "p", "default", grace=30)
    await gone(cluster)


@pytest.mark.parametrize("code", ["one", "300", "256", "-1", "1e2", "0255"])
async def test_an_annotation_that_says_nothing_is_warned_of(
    cluster: EmbeddedCluster, code: str
) -> None:
    cluster.store.create(bound(duration="1", code=code))
    await status(cluster, "Running")
    found = cluster.store.list(EVENT, "default")
    assert {each["involvedObject"]["name"] for each in found} == {"p"}
    assert sorted(each["message"] for each in found) == [
        f"annotation pumice.dev/exit-code: {code!r}: expected a whole number from 0 to 255; the pod ends with 0",
        "annotation pumice.dev/run-duration: '1': expected a duration such as 20s or 1m30s; the pod runs until it is deleted",
    ]


async def test_a_pod_succeeds_after_its_duration(cluster: EmbeddedCluster) -> None:
    cluster.store.create(bound(duration="20ms"))

    found = await status(cluster, "Succeeded")

    assert ready(found) == "False"
    [container] = found["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == 0
    assert container["state"]["terminated"]["reason"] == "Completed"


@pytest.mark.parametrize("code", ["1", "99", "199", "249", "255"])
async def test_a_pod_fails_with_its_exit_code(cluster: EmbeddedCluster, code: str) -> None:
    cluster.store.create(bound(duration="0s", code=code))

    found = await status(cluster, "Failed")

    assert found["containerStatuses"][0]["state"]["terminated"]["exitCode"] == int(code)
    assert cluster.store.list(EVENT, "default") == []
    assert found["containerStatuses"][0]["state"]["terminated"]["reason"] == "Error"


async def test_an_unbound_pod_stays_pending_until_it_is_bound(cluster: EmbeddedCluster) -> None:
    cluster.store.create(pod())
    await asyncio.sleep(0.05)
    assert (await status(cluster, "Pending"))["phase"] == "Pending"

    made = cluster.store.get(POD, "p", "default")
    assert made is not None
    resource = cluster.store.resource(POD)
    cluster.store.storage.put(resource.key, {**made, "spec": {**made["spec"], "nodeName": "node"}})

    await status(cluster, "Running")


async def test_pods_of_other_nodes_are_left_alone(cluster: EmbeddedCluster) -> None:
    cluster.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}})
    cluster.store.create(pod("elsewhere", nodeName="real"))
    cluster.store.delete(POD, "elsewhere", "default", grace=30)
    await asyncio.sleep(0.05)

    assert (await status(cluster, "Pending", "elsewhere"))["phase"] == "Pending"


async def test_a_deleted_pod_of_a_node_that_is_gone_goes(cluster: EmbeddedCluster) -> None:
    cluster.store.create(bound())
    await status(cluster, "Running")
    cluster.store.delete(NODE, "node")

    cluster.store.delete(POD, "p", "default", grace=30)

    await gone(cluster)


async def test_pods_of_a_deleted_node_go(cluster: EmbeddedCluster) -> None:
    cluster.add_node("other")
    cluster.store.create(bound())
    stays = bound("stays")
    stays["spec"]["nodeName"] = "other"
    cluster.store.create(stays)
    await status(cluster, "Running")
    cluster.store.delete(NODE, "node")
    await gone(cluster)
    assert cluster.store.get(POD, "stays", "default") is not None


async def test_pods_stay_when_their_node_comes_back_at_once(cluster: EmbeddedCluster) -> None:
    cluster.store.create(bound())
    await status(cluster, "Running")
    cluster.store.delete(NODE, "node")
    cluster.add_node("node")
    await asyncio.sleep(0.03)
    assert cluster.store.get(POD, "p", "default") is not None


async def test_a_deleted_pod_with_a_finalizer_ends_and_stays(cluster: EmbeddedCluster) -> None:
    held = bound()
    held["metadata"]["finalizers"] = ["a/b"]
    cluster.store.create(held)
    await status(cluster, "Running")

    cluster.store.delete(POD, "p", "default", grace=30)
    await status(cluster, "Succeeded")
    marked = cluster.store.get(POD, "p", "default")
    assert marked is not None
    marked["metadata"]["finalizers"] = []
    cluster.store.update(marked)

    await gone(cluster)


async def test_pods_bound_before_the_start_are_taken_care_of() -> None:
    cluster = EmbeddedCluster(timings=NodeTimings(start=0.0, stop=0.0))
    cluster.add_node("node")
    cluster.store.create(bound(duration="1ms"))

    async with cluster:
        await status(cluster, "Succeeded")


async def test_pods_bound_before_their_node_is_added_run(cluster: EmbeddedCluster) -> None:
    cluster.store.create(pod("early", nodeName="later"))

    cluster.add_node("later")

    await status(cluster, "Running", "early")


async def test_a_pod_made_anew_under_the_same_name_is_another_one(cluster: EmbeddedCluster) -> None:
    running = asyncio.Event()

    def note(change: StoredWrite) -> None:
        if change.new.obj["kind"] == "Pod" and change.new.obj["status"]["phase"] == "Running":
            running.set()

    cluster.store.storage.listen(note)
    cluster.store.create(bound(duration="50ms"))
    await running.wait()
    cluster.store.delete(POD, "p", "default", grace=0)

    cluster.store.create(bound())
    await status(cluster, "Running")
    await asyncio.sleep(0.1)

    assert (await status(cluster, "Running"))["phase"] == "Running"
