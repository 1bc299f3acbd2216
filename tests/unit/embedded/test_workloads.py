"""Simulated workloads: pods of ReplicaSets and batch Jobs."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import EVENT, INDEXED_JOB, POD, REPLICA_SET, Kind
from pumice.embedded import EmbeddedCluster, NodeTimings
from pumice.embedded.workloads import DEPLOYMENT, wishes_of_replica_set
from tests.kit.waiting import until

Raw = dict[str, Any]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    timings = NodeTimings(start=0.01, stop=0.01)
    async with EmbeddedCluster(timings=timings, workloads=True) as found:
        found.add_node("node", cpu="64")
        yield found


def template(code: int = 0, duration: str = "") -> Raw:
    annotations = {keys.RUN_DURATION: duration, keys.EXIT_CODE: str(code)} if duration else {}
    containers = [{"name": "main", "image": "busybox"}]
    # Bound at once, because no scheduler runs here.
    spec = {"nodeName": "node", "containers": containers, "restartPolicy": "Never"}
    return {"metadata": {"labels": {"app": "web"}, "annotations": annotations}, "spec": spec}


def owner(kind: Kind, **spec: Any) -> Raw:
    metadata = {"name": "web", "namespace": "default"}
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    return head | {"spec": {"template": template()} | spec}


def pods(cluster: EmbeddedCluster, phase: str = "Running") -> list[Raw]:
    return [each for each in cluster.store.list(POD) if each["status"]["phase"] == phase]


def status(cluster: EmbeddedCluster, kind: Kind) -> Raw:
    found: Raw = (cluster.store.get(kind, "web", "default") or {}).get("status") or {}
    return found


def conditions(cluster: EmbeddedCluster) -> list[str]:
    return [each["type"] for each in status(cluster, INDEXED_JOB).get("conditions") or ()]


def change(cluster: EmbeddedCluster, kind: Kind, **spec: Any) -> None:
    stored = cluster.store.get(kind, "web", "default")
    assert stored is not None
    cluster.store.update(stored | {"spec": stored["spec"] | spec})


async def test_a_replica_set_has_as_many_pods_as_it_asks_for(cluster: EmbeddedCluster) -> None:
    made = cluster.store.create(owner(REPLICA_SET, replicas=2))
    await until(lambda: status(cluster, REPLICA_SET).get("readyReplicas") == 2)
    first = pods(cluster)
    for pod in first:
        [reference] = pod["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (made["metadata"]["uid"], True)
        assert pod["metadata"]["name"].startswith("web-")
        assert pod["metadata"]["labels"] == {"app": "web"}

    cluster.store.delete(POD, first[0]["metadata"]["name"], "default")
    await until(lambda: len(pods(cluster)) == 2)
    change(cluster, REPLICA_SET, replicas=120)  # in several turns
    await until(lambda: status(cluster, REPLICA_SET)["replicas"] == 120)
    change(cluster, REPLICA_SET, replicas=1)
    await until(lambda: len(cluster.store.list(POD)) == 1)
    cluster.store.delete(REPLICA_SET, "web", "default")
    await until(lambda: not cluster.store.list(POD))


async def test_a_deployment_has_one_replica_set_with_pods(cluster: EmbeddedCluster) -> None:
    made = owner(DEPLOYMENT, replicas=2, selector={"matchLabels": {"app": "web"}})
    made["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "research"}
    cluster.store.create(made)
    await until(lambda: status(cluster, DEPLOYMENT).get("availableReplicas") == 2)
    [first] = cluster.store.list(REPLICA_SET)
    assert first["metadata"]["annotations"] == made["metadata"]["annotations"]
    assert first["spec"]["selector"]["matchLabels"].keys() == {"app", "pod-template-hash"}
    assert status(cluster, DEPLOYMENT)["conditions"][0]["status"] == "True"

    change(cluster, DEPLOYMENT, replicas=3)
    await until(lambda: status(cluster, DEPLOYMENT).get("readyReplicas") == 3)
    changed = template()
    changed["spec"]["containers"][0]["image"] = "busybox:2"
    change(cluster, DEPLOYMENT, template=changed)
    await until(lambda: len(cluster.store.list(REPLICA_SET)) == 2)
    await until(lambda: status(cluster, DEPLOYMENT).get("updatedReplicas") == 3)
    await until(lambda: len(cluster.store.list(POD)) == 3)
    replicas = {
        each["metadata"]["name"]: each["spec"]["replicas"]
        for each in cluster.store.list(REPLICA_SET)
    }
    assert (replicas.pop(first["metadata"]["name"]), list(replicas.values())) == (0, [3])
    assert {each["spec"]["containers"][0]["image"] for each in cluster.store.list(POD)} == {
        "busybox:2"
    }

    cluster.store.delete(DEPLOYMENT, "web", "default")
    await until(lambda: not cluster.store.list(POD) and not cluster.store.list(REPLICA_SET))


def test_pods_on_no_node_go_first_then_those_that_are_not_ready_then_the_newest() -> None:
    def pod(name: str, second: int, node: str = "node", *, ready: bool = True) -> Raw:
        moment = f"2026-01-01T00:00:{second:02}Z"
        condition = {"type": "Ready", "status": str(ready)}
        return {
            "metadata": {"name": name, "creationTimestamp": moment},
            "spec": {"nodeName": node},
            "status": {"conditions": [condition]},
        }

    found = [pod("a", 1), pod("b", 2), pod("c", 0, ready=False), pod("d", 0, "", ready=False)]
    wishes = wishes_of_replica_set(owner(REPLICA_SET, replicas=1), found, "")
    assert [each["metadata"]["name"] for each in wishes.surplus] == ["d", "c", "b"]


async def test_a_pod_that_has_ended_is_replaced(cluster: EmbeddedCluster) -> None:
    cluster.store.create(owner(REPLICA_SET, replicas=1))
    await until(lambda: pods(cluster))
    [pod] = pods(cluster)
    cluster.store.update_status(pod | {"status": pod["status"] | {"phase": "Failed"}})
    await until(lambda: len(pods(cluster)) == 1)
    assert len(cluster.store.list(POD)) == 2


async def test_a_job_runs_until_its_completions_have_succeeded(cluster: EmbeddedCluster) -> None:
    spec = {"completions": 5, "parallelism": 2, "template": template(duration="20ms")}
    cluster.store.create(owner(INDEXED_JOB, **spec))
    most = 0

    def ended() -> bool:
        nonlocal most
        most = max(most, len(pods(cluster)))
        return conditions(cluster) == ["Complete"]

    await until(ended)
    assert most <= 2
    found = status(cluster, INDEXED_JOB)
    assert (found["succeeded"], found["active"], found["failed"]) == (5, 0, 0)
    assert found["completionTime"]


async def test_pods_of_an_indexed_job_have_an_index_each(cluster: EmbeddedCluster) -> None:
    cluster.store.create(owner(INDEXED_JOB, completionMode="Indexed", completions=2, parallelism=2))
    await until(lambda: len(pods(cluster)) == 2)
    first, second = sorted(pods(cluster), key=lambda pod: str(pod["metadata"]["name"]))
    key = "batch.kubernetes.io/job-completion-index"
    for index, pod in enumerate((first, second)):
        meta = pod["metadata"]
        assert meta["name"].startswith(f"web-{index}-")
        assert meta["labels"][key] == meta["annotations"][key] == str(index)
        assert meta["labels"]["batch.kubernetes.io/job-name"] == "web"
        assert pod["spec"]["hostname"] == f"web-{index}"
        assert [each["name"] for each in pod["spec"]["containers"][0]["env"]] == [
            "JOB_COMPLETION_INDEX"
        ]
    cluster.store.delete(POD, second["metadata"]["name"], "default")
    await until(lambda: len(pods(cluster)) == 2)
    assert {each["spec"]["hostname"] for each in pods(cluster)} == {"web-0", "web-1"}


async def test_a_job_fails_after_as_many_failures_as_it_bears(cluster: EmbeddedCluster) -> None:
    spec = {"completions": 1, "backoffLimit": 1, "template": template(code=3, duration="10ms")}
    cluster.store.create(owner(INDEXED_JOB, **spec))
    await until(lambda: conditions(cluster) == ["Failed"])
    assert status(cluster, INDEXED_JOB)["failed"] == 2
    assert len(cluster.store.list(POD)) == 2


async def test_a_job_that_is_suspended_has_no_pods(cluster: EmbeddedCluster) -> None:
    cluster.store.create(owner(INDEXED_JOB, parallelism=2))
    await until(lambda: len(pods(cluster)) == 2)
    change(cluster, INDEXED_JOB, suspend=True)
    await until(lambda: not cluster.store.list(POD))
    change(cluster, INDEXED_JOB, suspend=False)
    await until(lambda: len(pods(cluster)) == 2)


async def test_a_pod_that_is_refused_is_an_event_of_its_owner(cluster: EmbeddedCluster) -> None:
    broken = template()
    broken["spec"]["dnsPolicy"] = "Nonsense"
    cluster.store.create(owner(REPLICA_SET, template=broken))
    await until(lambda: cluster.store.list(EVENT))
    [event] = cluster.store.list(EVENT)
    assert (event["reason"], event["involvedObject"]["kind"]) == ("FailedCreate", "ReplicaSet")
    assert "spec.dnsPolicy" in event["message"]
    change(cluster, REPLICA_SET, template=template())
    await until(lambda: pods(cluster))


async def test_owners_that_exist_before_are_looked_after() -> None:
    cluster = EmbeddedCluster(workloads=True)
    cluster.store.create(owner(REPLICA_SET, replicas=1))
    assert not cluster.store.list(POD)
    async with cluster:
        await until(lambda: cluster.store.list(POD))


async def test_without_them_no_pods_are_made() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.store.create(owner(REPLICA_SET, replicas=1))
        await until(lambda: not cluster.store.list(POD))
        assert not status(cluster, REPLICA_SET)
