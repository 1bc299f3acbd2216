"""The whole way on a real API server: a Job is admitted, wired, placed, run, explained and removed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import job, queue, task
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation

EXAMPLES = Path(__file__).parents[2] / "examples"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces"

pytestmark = pytest.mark.usefixtures("installation")


class Cluster:
    """The test's namespace, read and written as a user does."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def apply(self, *manifests: dict[str, Any], check: bool = True, dry_run: bool = False) -> str:
        """`kubectl apply`; answers what it printed on both streams."""
        text = yaml.safe_dump_all(manifests)
        options = ["--dry-run=server"] if dry_run else []
        done = self.plane.kubectl(
            "apply", *options, "-f", "-", stdin=text, namespace=self.namespace, check=check
        )
        return done.stdout + done.stderr

    def job(self, name: str) -> dict[str, Any]:
        status, found = self.plane.request("GET", f"{JOBS}/{self.namespace}/jobs/{name}")
        assert status == 200, found
        return found

    def phase(self, name: str) -> str:
        return str(self.job(name).get("status", {}).get("state", {}).get("phase", ""))

    def message(self, name: str) -> str:
        return str(self.job(name).get("status", {}).get("state", {}).get("message", ""))

    def items(self, path: str) -> list[dict[str, Any]]:
        status, found = self.plane.request("GET", path)
        assert status == 200, found
        items: list[dict[str, Any]] = found["items"]
        return items

    def pods(self) -> dict[str, dict[str, Any]]:
        found = self.items(f"/api/v1/namespaces/{self.namespace}/pods")
        return {pod["metadata"]["name"]: pod for pod in found}

    def pod_groups(self) -> list[dict[str, Any]]:
        return self.items(f"{GROUPS}/{self.namespace}/podgroups")

    def await_phase(self, name: str, *phases: str, seconds: float = 30) -> None:
        wait_until(lambda: self.phase(name) in phases, f"{name} is {phases}", seconds)


@pytest.fixture
def cluster(controlplane: ControlPlane, namespace: str) -> Cluster:
    return Cluster(controlplane, namespace)


@pytest.fixture
def nodes(add_node: Callable[..., str]) -> None:
    """The three nodes of the task-topology document."""
    for name, cpu in (("node1", "2"), ("node2", "1"), ("node3", "4")):
        add_node(name, cpu)


@pytest.fixture
def make_queue(controlplane: ControlPlane) -> Iterator[Callable[..., str]]:
    """Queues that are gone after the test."""
    names: list[str] = []

    def make(name: str, **spec: Any) -> str:
        manifest = queue(name, state="", **spec)
        manifest.pop("status")
        controlplane.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
        names.append(name)
        return name

    yield make
    for name in names:
        controlplane.kubectl("delete", "queue", name, "--ignore-not-found", check=False)


def example(name: str) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text())
    return manifest


@pytest.mark.usefixtures("nodes")
def test_a_tensorflow_job_is_admitted_wired_placed_by_bucket_and_completed(
    cluster: Cluster,
) -> None:
    cluster.apply(example("tensorflow.yaml"))

    admitted = cluster.job("train")
    assert set(admitted["spec"]["plugins"]) >= {"tensorflow", "svc", "task-topology"}
    assert admitted["metadata"]["annotations"]["volcano.sh/task-topology-affinity"] == "ps,worker"
    assert [each["minAvailable"] for each in admitted["spec"]["tasks"]] == [2, 4]

    cluster.await_phase("train", "Running", "Completed")
    [group] = cluster.pod_groups()
    assert group["metadata"]["name"] == f"train-{admitted['metadata']['uid']}"
    assert group["spec"]["minMember"] == 6

    pods = cluster.pods()
    assert sorted(pods) == sorted(
        [*(f"train-ps-{i}" for i in range(2)), *(f"train-worker-{i}" for i in range(4))]
    )
    addresses = {
        "ps": [f"train-ps-{i}.train:2222" for i in range(2)],
        "worker": [f"train-worker-{i}.train:2222" for i in range(4)],
    }
    for name, pod in pods.items():
        _, role, index = name.split("-")
        environment = {
            each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]
        }
        assert json.loads(environment["TF_CONFIG"] or "") == {
            "cluster": addresses,
            "task": {"type": role, "index": int(index)},
        }
        assert environment["VC_TASK_INDEX"] == index

    node = {name: pod["spec"]["nodeName"] for name, pod in pods.items()}
    assert node["train-ps-0"] == node["train-worker-0"] == node["train-worker-2"] == "node3"
    assert node["train-ps-1"] == node["train-worker-1"] == "node1"

    cluster.await_phase("train", "Completed")
    passed = [each["status"] for each in cluster.job("train")["status"]["conditions"]]
    assert passed == ["Pending", "Running", "Completed"]
    assert cluster.job("train")["status"]["succeeded"] == 6


@pytest.mark.usefixtures("nodes")
def test_a_job_that_does_not_fit_stays_wholly_pending_with_a_reason(cluster: Cluster) -> None:
    cluster.apply(example("does-not-fit.yaml"))
    wait_until(lambda: "Insufficient cpu" in cluster.message("too-big"), "a reason", 30)
    assert cluster.phase("too-big") == "Pending"
    assert all("nodeName" not in pod["spec"] for pod in cluster.pods().values())
    [group] = cluster.pod_groups()
    assert group["status"]["phase"] == "Inqueue"
    [condition] = [
        each for each in group["status"]["conditions"] if each["type"] == "Unschedulable"
    ]
    assert condition["reason"] == "NotEnoughResources"
    assert "tasks in gang unschedulable" in condition["message"]


def test_a_bad_job_is_refused_with_all_its_errors_by_a_dry_run(cluster: Cluster) -> None:
    printed = cluster.apply(example("bad-job.yaml"), check=False, dry_run=True)
    for path in (
        "spec.minAvailable",
        "spec.queue",
        "spec.plugins.tensorbaord",
        "spec.policies[0]",
        "spec.policies[1].event",
        "spec.policies[2].action",
        "spec.volumes[0]",
        "spec.volumes[1].mountPath",
        "spec.tasks[0].minAvailable",
        "spec.tasks[1].dependsOn.name[0]",
        "spec.tasks[1].policies[0].exitCode",
        "spec.tasks[2].name",
    ):
        assert path in printed, printed
    status, _ = cluster.plane.request("GET", f"{JOBS}/{cluster.namespace}/jobs/bad")
    assert status == 404


def test_applying_an_unchanged_manifest_again_changes_nothing(cluster: Cluster) -> None:
    manifest = job("again", [task("", 2), task("", 1)], plugins={"tensorflow": []})
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    spec = cluster.job("again")["spec"]
    generation = cluster.job("again")["metadata"]["generation"]
    cluster.apply(manifest)
    assert cluster.job("again")["spec"] == spec
    assert cluster.job("again")["metadata"]["generation"] == generation


def test_the_node_groups_of_a_queue_are_honoured(
    cluster: Cluster, add_node: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    for name, group in (("left", "red"), ("right", "blue")):
        add_node(name, "4", labels={"volcano.sh/nodegroup-name": group})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": ["blue"]}
    make_queue("blue-only", affinity={"nodeGroupAffinity": required})
    wait_until(
        lambda: "Open" in cluster.plane.kubectl("get", "queue", "blue-only").stdout, "open", 20
    )
    manifest = job("painted", [task("w", 3, cpu="1")], queue="blue-only")
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    cluster.await_phase("painted", "Running")
    assert {pod["spec"]["nodeName"] for pod in cluster.pods().values()} == {"right"}


def test_deletion_leaves_nothing_behind(cluster: Cluster, add_node: Callable[..., str]) -> None:
    add_node("roomy", "8")
    manifest = job("gone", [task("w", 2, cpu="1")], plugins={"svc": []})
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    cluster.await_phase("gone", "Running")
    cluster.plane.kubectl("delete", "vcjob/gone", "--wait=false", namespace=cluster.namespace)

    def left() -> list[str]:
        core = f"/api/v1/namespaces/{cluster.namespace}"
        paths = [
            f"{JOBS}/{cluster.namespace}/jobs",
            f"{GROUPS}/{cluster.namespace}/podgroups",
            f"{core}/pods",
            f"{core}/services",
            f"/apis/networking.k8s.io/v1/namespaces/{cluster.namespace}/networkpolicies",
        ]
        names = [each["metadata"]["name"] for path in paths for each in cluster.items(path)]
        maps = cluster.items(f"{core}/configmaps")
        return names + [
            each["metadata"]["name"]
            for each in maps
            if each["metadata"]["name"] != "kube-root-ca.crt"
        ]

    # The garbage collector of Kubernetes notices a new CRD only every half minute.
    wait_until(lambda: not left(), "nothing is left", 90)


def test_a_restart_of_every_component_loses_nothing(
    cluster: Cluster, installation: Installation, add_node: Callable[..., str]
) -> None:
    add_node("steady", "8")
    for component in ("controller", "scheduler"):
        installation.stop(component)
    manifest = job(
        "survivor", [task("w", 3, cpu="1", annotations={"pumice.dev/run-duration": "1s"})]
    )
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    installation.start("controller", "scheduler")
    cluster.await_phase("survivor", "Running", "Completed", seconds=40)
    installation.restart("controller")
    cluster.await_phase("survivor", "Completed", seconds=60)
    assert len(cluster.pods()) == 3
