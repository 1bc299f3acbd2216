"""Job plugins on pods that Kubernetes' own Job controller makes, on a real control plane with Pumice installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN_LABEL = "pumice.dev/wired-for"

pytestmark = pytest.mark.usefixtures("installation")

Raw = dict[str, Any]


class Cluster:
    """The test's namespace, as kubectl shows it."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def apply(self, *manifests: Raw, check: bool = True, **options: str) -> str:
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        text = yaml.safe_dump_all(manifests)
        done = self.plane.kubectl(
            "apply", *flags, "-f", "-", stdin=text, namespace=self.namespace, check=check
        )
        return done.stdout + done.stderr

    def items(self, kinds: str, selector: str = "") -> list[Raw]:
        found = self.plane.kubectl(
            "get", kinds, "-l", selector, "-o", "json", namespace=self.namespace
        )
        items: list[Raw] = json.loads(found.stdout)["items"]
        return items

    def ours(self) -> dict[str, Raw]:
        found = self.items("services,configmaps,secrets,networkpolicies", OWN_LABEL)
        return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}

    def get(self, kind: str, name: str) -> Raw:
        found = self.plane.kubectl("get", kind, name, "-o", "json", namespace=self.namespace)
        obj: Raw = json.loads(found.stdout)
        return obj

    def events(self, name: str) -> str:
        found = self.items("events")
        return "\n".join(
            each["message"] for each in found if each["involvedObject"]["name"] == name
        )


@pytest.fixture
def cluster(controlplane: ControlPlane, namespace: str) -> Cluster:
    return Cluster(controlplane, namespace)


def example(name: str) -> Raw:
    manifest: Raw = yaml.safe_load((EXAMPLES / name).read_text())
    return manifest


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


def assert_objects(cluster: Cluster, job: Raw, pod: Raw) -> None:
    """What the variables of a pod refer to is there, and goes with the Job."""
    ours = cluster.ours()
    assert sorted(ours) == ["ConfigMap/resnet-svc", "NetworkPolicy/resnet", "Service/resnet"]
    for each in ours.values():
        [owner] = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Job", job["metadata"]["uid"])
    service = ours["Service/resnet"]["spec"]
    assert service["clusterIP"] == "None"
    labels = pod["metadata"]["labels"]
    assert all(labels[key] == value for key, value in service["selector"].items())
    data = ours["ConfigMap/resnet-svc"]["data"]
    wanted = {
        each["valueFrom"]["configMapKeyRef"]["key"]
        for each in pod["spec"]["containers"][0]["env"]
        if "configMapKeyRef" in each.get("valueFrom", {})
    }
    assert wanted <= set(data)
    assert wanted


def assert_wired_once(cluster: Cluster, pod: Raw) -> None:
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
    sent = cluster.plane.kubectl(
        "create", "--dry-run=server", "-o", "json", "-f", "-",
        stdin=json.dumps(copy), namespace=cluster.namespace,
    )  # fmt: skip
    assert json.loads(sent.stdout)["spec"] == pod["spec"]


def test_an_indexed_job_trains_with_pytorch(cluster: Cluster) -> None:
    cluster.apply(example("indexed-job-pytorch.yaml"))

    wait_until(lambda: len(cluster.items("pods")) == 4, "four pods", 30)
    wait_until(lambda: "NetworkPolicy/resnet" in cluster.ours(), "objects", 30)
    job = cluster.get("jobs.batch", "resnet")
    pods = {
        int(each["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]): each
        for each in cluster.items("pods")
    }
    assert sorted(pods) == [0, 1, 2, 3]
    for index, pod in pods.items():
        assert_rank(pod, index)
    assert_objects(cluster, job, pods[0])
    assert_wired_once(cluster, pods[1])

    cluster.plane.kubectl("delete", "jobs.batch", "resnet", namespace=cluster.namespace)
    wait_until(lambda: not cluster.ours(), "nothing is left", 90)


def test_a_job_that_cannot_be_wired_says_why(cluster: Cluster) -> None:
    manifest = example("indexed-job-pytorch.yaml")
    manifest["metadata"]["name"] = "odd"
    annotations = manifest["spec"]["template"]["metadata"]["annotations"]
    annotations["pumice.dev/plugins"] = "pytroch"
    cluster.apply(manifest)

    wait_until(lambda: 'did you mean "pytorch"' in cluster.events("odd"), "an event", 30)
    assert cluster.items("pods") == []
    assert cluster.ours() == {}


def test_pods_follow_their_job_within_milliseconds(cluster: Cluster) -> None:
    manifests = []
    for number in range(20):
        manifest = example("indexed-job-pytorch.yaml")
        manifest["metadata"]["name"] = f"many-{number}"
        manifest["spec"] |= {"completions": 2, "parallelism": 2}
        manifests.append(manifest)
    cluster.apply(*manifests)

    wait_until(lambda: len(cluster.items("pods")) == 40, "forty pods", 60)
    for pod in cluster.items("pods"):
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        assert env(pod)["MASTER_ADDR"] == f"{job}-0.{job}"
    assert "cannot be wired" not in "".join(each["message"] for each in cluster.items("events"))
