"""Pods that Kubernetes' own controllers make, on a real control plane with Pumice installed: wired by plugins, and placed as gangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.api.kinds import (
    CONFIG_MAP,
    EVENT,
    INDEXED_JOB,
    NETWORK_POLICY,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
)
from tests.kit.namespaces import Namespace, example
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

OWN_LABEL = "pumice.dev/wired-for"

pytestmark = pytest.mark.usefixtures("installation")

Raw = dict[str, Any]


OBJECTS = (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)


@pytest.fixture
def cluster(controlplane: ControlPlane, namespace: str) -> Namespace:
    return Namespace(controlplane, namespace)


def ours(cluster: Namespace) -> dict[str, Raw]:
    """What has been made for Jobs."""
    return {
        f"{kind.kind}/{each['metadata']['name']}": each
        for kind in OBJECTS
        for each in cluster.all(kind, OWN_LABEL)
    }


def env(pod: Raw) -> dict[str, str]:
    container = pod["spec"]["containers"][0]
    names = [each["name"] for each in container["env"]]
    assert len(names) == len(set(names))
    return {each["name"]: each.get("value", "") for each in container["env"]}


def assert_rank(pod: Raw, index: int) -> None:
    """A pod has what torchrun wants to know."""
    found = env(pod)
    assert {name: found[name] for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")} == {
        "MASTER_ADDR": "resnet-0.resnet",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "4",
        "RANK": str(index),
    }
    assert (found["PET_NNODES"], found["PET_NODE_RANK"]) == ("4", str(index))
    assert found["PET_NPROC_PER_NODE"] == "4"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (f"resnet-{index}", "resnet")
    assert pod["metadata"]["annotations"]["pumice.dev/wired"] == "svc,pytorch"
    waits = [each["name"] for each in pod["spec"].get("initContainers", ())]
    assert waits == ([] if index == 0 else ["wait-for-master"])


def assert_objects(cluster: Namespace, job: Raw, pod: Raw) -> None:
    """What the variables of a pod refer to is there, and goes with the Job."""
    made = ours(cluster)
    assert sorted(made) == ["ConfigMap/resnet-svc", "NetworkPolicy/resnet", "Service/resnet"]
    for each in made.values():
        [owner] = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Job", job["metadata"]["uid"])
    service = made["Service/resnet"]["spec"]
    assert service["clusterIP"] == "None"
    labels = pod["metadata"]["labels"]
    assert all(labels[key] == value for key, value in service["selector"].items())
    data = made["ConfigMap/resnet-svc"]["data"]
    wanted = {
        each["valueFrom"]["configMapKeyRef"]["key"]
        for each in pod["spec"]["containers"][0]["env"]
        if "configMapKeyRef" in each.get("valueFrom", {})
    }
    assert wanted <= set(data)
    assert wanted


def assert_wired_once(cluster: Namespace, pod: Raw) -> None:
    """A pod that is wired is not wired again, whoever sends it."""
    copy = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "again",
            **{key: pod["metadata"][key] for key in ("labels", "annotations", "ownerReferences")},
        },
        "spec": pod["spec"],
    }
    assert cluster.would_create(copy)["spec"] == pod["spec"]


def test_an_indexed_job_trains_with_pytorch(cluster: Namespace) -> None:
    cluster.apply(example("indexed-job-pytorch.yaml"))

    wait_until(lambda: len(cluster.all(POD)) == 4, "four pods", 30)
    wait_until(lambda: "NetworkPolicy/resnet" in ours(cluster), "objects", 30)
    job = cluster.get(INDEXED_JOB, "resnet")
    pods = {
        int(each["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]): each
        for each in cluster.all(POD)
    }
    assert sorted(pods) == [0, 1, 2, 3]
    for index, pod in pods.items():
        assert_rank(pod, index)
    assert_objects(cluster, job, pods[0])
    assert_wired_once(cluster, pods[1])

    cluster.kubectl("delete", "jobs.batch", "resnet")
    wait_until(lambda: not ours(cluster), "nothing is left", 90)


def test_a_job_that_cannot_be_wired_says_why(cluster: Namespace) -> None:
    manifest = example("indexed-job-pytorch.yaml")
    manifest["metadata"]["name"] = "odd"
    annotations = manifest["spec"]["template"]["metadata"]["annotations"]
    annotations["pumice.dev/plugins"] = "pytroch"
    cluster.apply(manifest)

    wait_until(lambda: 'did you mean "pytorch"' in cluster.events("odd"), "an event", 30)
    assert cluster.all(POD) == []
    assert ours(cluster) == {}


def test_pods_follow_their_job_within_milliseconds(cluster: Namespace) -> None:
    manifests = []
    for number in range(20):
        manifest = example("indexed-job-pytorch.yaml")
        manifest["metadata"]["name"] = f"many-{number}"
        manifest["spec"] |= {"completions": 2, "parallelism": 2}
        manifests.append(manifest)
    cluster.apply(*manifests)

    wait_until(lambda: len(cluster.all(POD)) == 40, "forty pods", 60)
    for pod in cluster.all(POD):
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        assert env(pod)["MASTER_ADDR"] == f"{job}-0.{job}"
    assert "cannot be wired" not in "".join(each["message"] for each in cluster.all(EVENT))


def running(cluster: Namespace) -> int:
    """How many pods run and are to stay."""
    return sum(
        pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        for pod in cluster.all(POD)
    )


def minimums(cluster: Namespace) -> list[int]:
    return [group["spec"]["minMember"] for group in cluster.all(POD_GROUP)]


def gang(kind: str, replicas: int, minimum: int, node: str, **spec: Any) -> Raw:
    """The example of a gang, on one node."""
    manifest = example("replicaset.yaml")
    manifest["kind"] = kind
    manifest["metadata"]["annotations"]["scheduling.volcano.sh/group-min-member"] = str(minimum)
    manifest["spec"] |= {"replicas": replicas} | spec
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return manifest


def test_a_gang_of_a_replica_set_is_scaled(
    cluster: Namespace, add_node: Callable[..., str]
) -> None:
    node = add_node(f"{cluster.name}-node", "4")
    cluster.apply(gang("ReplicaSet", 6, 5, node))
    wait_until(lambda: len(cluster.all(POD)) == 6, "six pods", 30)
    wait_until(lambda: "NotEnoughResources" in str(cluster.all(POD_GROUP)), "a reason", 30)
    assert (running(cluster), minimums(cluster)) == (0, [5])

    cluster.kubectl("scale", "rs/inference", "--replicas=4")
    wait_until(lambda: running(cluster) == 4, "four pods run", 30)
    wait_until(lambda: minimums(cluster) == [4], "the minimum to follow", 10)
    phase = "Running"  # which is written a moment after its pods run
    wait_until(lambda: cluster.all(POD_GROUP)[0]["status"]["phase"] == phase, phase, 10)
    [group] = cluster.all(POD_GROUP)
    [owner] = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ReplicaSet", "inference")

    cluster.kubectl("scale", "rs/inference", "--replicas=0")
    wait_until(lambda: not cluster.all(POD) and not cluster.all(POD_GROUP), "nothing", 30)
    cluster.kubectl("scale", "rs/inference", "--replicas=1")
    wait_until(lambda: running(cluster) == 1, "one pod runs", 30)


def test_a_gang_of_a_deployment_is_updated_pod_by_pod(
    cluster: Namespace, add_node: Callable[..., str]
) -> None:
    node = add_node(f"{cluster.name}-node", "3")
    few = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    manifest = gang("Deployment", 2, 2, node, strategy=few)
    cluster.apply(manifest)
    cluster.kubectl("rollout", "status", "deployment/inference", "--timeout=30s")
    cluster.kubectl("set", "image", "deployment/inference", "server=vllm/vllm-openai:v0.9.1")
    cluster.kubectl("rollout", "status", "deployment/inference", "--timeout=30s")
    # That of the ReplicaSet of the first image has gone.
    wait_until(lambda: minimums(cluster) == [2], "one group", 30)
