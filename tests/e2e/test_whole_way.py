"""The whole way on a real API server: a Job is admitted, wired, placed, run, explained and removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pumice.api.kinds import (
    COMMAND,
    CONFIG_MAP,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    NETWORK_POLICY,
    POD,
    POD_GROUP,
    QUEUE,
    SERVICE,
)
from tests.kit.builders import job, task
from tests.kit.namespaces import Namespace, example, examples
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import Installation

Raw = dict[str, Any]

pytestmark = pytest.mark.usefixtures("installation")


@pytest.fixture
def cluster(controlplane: ControlPlane, namespace: str) -> Namespace:
    return Namespace(controlplane, namespace)


@pytest.fixture
def nodes(add_node: Callable[..., str]) -> None:
    """The three nodes of the task-topology document."""
    for name, cpu in (("node1", "2"), ("node2", "1"), ("node3", "4")):
        add_node(name, cpu)


@pytest.mark.usefixtures("nodes")
def test_a_tensorflow_job_is_admitted_wired_placed_by_bucket_and_completed(
    cluster: Namespace,
) -> None:
    cluster.apply(example("tensorflow.yaml"))

    admitted = cluster.get(JOB, "train")
    assert set(admitted["spec"]["plugins"]) >= {"tensorflow", "svc", "task-topology"}
    assert admitted["metadata"]["annotations"]["volcano.sh/task-topology-affinity"] == "ps,worker"
    assert [each["minAvailable"] for each in admitted["spec"]["tasks"]] == [2, 4]

    cluster.await_phase("train", "Running", "Completed")
    [group] = cluster.all(POD_GROUP)
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
    passed = [each["status"] for each in cluster.get(JOB, "train")["status"]["conditions"]]
    assert passed == ["Pending", "Running", "Completed"]
    assert cluster.get(JOB, "train")["status"]["succeeded"] == 6


@pytest.mark.usefixtures("nodes")
def test_a_job_flow_runs_its_jobs_in_order(cluster: Namespace) -> None:
    """A diamond: two Jobs between the first and the last."""
    late, *templates, flow = examples("jobflow.yaml")
    cluster.apply(flow, *templates)
    cluster.until(
        JOB_FLOW,
        lambda found: found["study"].get("status", {}).get("conditions"),
        "a reason why the first Job is not there",
    )
    conditions = cluster.get(JOB_FLOW, "study")["status"]["conditions"]
    assert conditions == {"study-prepare": {"phase": "WaitingForTemplate"}}
    cluster.apply(late)
    cluster.until(
        JOB_FLOW,
        lambda found: found["study"]["status"]["state"]["phase"] == "Succeed",
        "the JobFlow to succeed",
    )
    jobs = {each["metadata"]["name"]: each for each in cluster.all(JOB)}
    assert sorted(jobs) == sorted(f"study-{each['name']}" for each in flow["spec"]["flows"])
    for each in flow["spec"]["flows"]:
        for target in each.get("dependsOn", {}).get("targets", ()):
            ended = jobs[f"study-{target}"]["status"]["state"]["lastTransitionTime"]
            assert jobs[f"study-{each['name']}"]["metadata"]["creationTimestamp"] >= ended
    assert [len(cluster.all(POD, f"volcano.sh/job-name={name}")) for name in sorted(jobs)] == [
        *(1, 1, 4, 2)
    ]
    for name in ("prepare", "compare"):
        cluster.until(
            JOB_TEMPLATE,
            lambda found, name=name: (  # type: ignore[misc]
                found[name].get("status") == {"jobDependsOnList": [f"study-{name}"]}
            ),
            "the Jobs of the JobTemplate",
        )


@pytest.mark.usefixtures("nodes")
def test_a_job_that_does_not_fit_stays_wholly_pending_with_a_reason(cluster: Namespace) -> None:
    cluster.apply(example("does-not-fit.yaml"))
    wait_until(
        lambda: "Insufficient cpu" in cluster.state("too-big").get("message", ""), "a reason", 30
    )
    assert cluster.phase("too-big") == "Pending"
    assert all("nodeName" not in pod["spec"] for pod in cluster.pods().values())
    [group] = cluster.all(POD_GROUP)
    assert group["status"]["phase"] == "Inqueue"
    [condition] = [
        each for each in group["status"]["conditions"] if each["type"] == "Unschedulable"
    ]
    assert condition["reason"] == "NotEnoughResources"
    assert "tasks in gang unschedulable" in condition["message"]


def test_a_bad_job_is_refused_with_all_its_errors_by_a_dry_run(cluster: Namespace) -> None:
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
    assert cluster.find(JOB, "bad") == {}


def test_applying_an_unchanged_manifest_again_changes_nothing(cluster: Namespace) -> None:
    manifest = job("again", [task("", 2), task("", 1)], plugins={"tensorflow": []})
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    spec = cluster.get(JOB, "again")["spec"]
    generation = cluster.get(JOB, "again")["metadata"]["generation"]
    cluster.apply(manifest)
    assert cluster.get(JOB, "again")["spec"] == spec
    assert cluster.get(JOB, "again")["metadata"]["generation"] == generation


def test_the_node_groups_of_a_queue_are_honoured(
    cluster: Namespace, add_node: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    for name, group in (("left", "red"), ("right", "blue")):
        add_node(name, "4", labels={"volcano.sh/nodegroup-name": group})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": ["blue"]}
    make_queue("blue-only", affinity={"nodeGroupAffinity": required})
    wait_until(lambda: "Open" in cluster.kubectl("get", "queue", "blue-only"), "open", 20)
    manifest = job("painted", [task("w", 3, cpu="1")], queue="blue-only")
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    cluster.await_phase("painted", "Running")
    assert {pod["spec"]["nodeName"] for pod in cluster.pods().values()} == {"right"}


def test_a_queue_is_closed_under_load_and_opened_again(
    cluster: Namespace, add_node: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    """What runs goes on, what waits waits, what comes is refused; then everything that was admitted completes."""
    make_queue("load")
    make_queue("team", parent="load")
    add_node("loaded", "2")

    def a_job(name: str, size: int, **annotations: str) -> Raw:
        manifest = job(name, [task("w", size, cpu="1", annotations=annotations)], queue="team")
        del manifest["metadata"]["namespace"]
        return manifest

    def short(*numbers: int) -> list[Raw]:
        return [
            a_job(f"short-{each}", 1, **{"pumice.dev/run-duration": "300ms"}) for each in numbers
        ]

    def operate(action: str) -> None:
        """As vcctl does."""
        target = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "name": "load"}
        head = {"apiVersion": COMMAND.api_version, "kind": COMMAND.kind, "action": action}
        order = head | {"metadata": {"generateName": "load-"}, "target": target}
        cluster.kubectl("create", "-f", "-", obj=order)

    def shown(queue: str) -> dict[str, str]:
        head, row = cluster.kubectl("get", "queue", queue).splitlines()
        return dict(zip(head.split(), row.split(), strict=False))

    wait_until(lambda: shown("team").get("STATE") == "Open", "open")
    cluster.apply(a_job("fills", 2))
    cluster.await_phase("fills", "Running")
    cluster.apply(*short(1, 2, 3))
    with ThreadPoolExecutor(1) as pool:
        arriving = pool.submit(cluster.apply, *short(*range(4, 12)), check=False)
        operate("CloseQueue")
        printed = arriving.result()
    wait_until(lambda: shown("team")["STATE"] == "Closing" and shown("team")["RUNNING"] == "1")
    admitted = set(cluster.names(JOB))
    assert printed.count(" created") == len(admitted) - 4
    assert printed.count('queue with state `Open`, found queue "team" in state Clos') == 12 - len(
        admitted
    )
    text = cluster.apply(*short(12), check=False)
    assert (
        'can only submit job to queue with state `Open`, found queue "team" in state Closing'
        in text
    )

    before = cluster.pods()["fills-w-1"]["metadata"]["uid"]
    cluster.kubectl("delete", "pod", "fills-w-1", "--wait=false")

    def again(pods: dict[str, Raw]) -> bool:
        pod = pods.get("fills-w-1", {"metadata": {"uid": before}})
        is_another = bool(pod["metadata"]["uid"] != before)
        return is_another and pod["status"].get("phase") == "Running"

    cluster.until(POD, again, "another pod in its place")
    cluster.kubectl("delete", "vcjob", "fills")
    waiting = admitted - {"fills"}

    def held_back(groups: dict[str, Raw]) -> bool:
        """There is room now, and all that was let in says what it waits for."""
        said = [str((each.get("status") or {}).get("conditions")) for each in groups.values()]
        return bool(said) and all("is Closing and takes nothing in" in each for each in said)

    cluster.until(POD_GROUP, held_back, "reasons of what waits")
    assert {cluster.phase(name) for name in waiting} == {"Pending"}
    assert "No resources" in cluster.kubectl("get", "commands")

    operate("OpenQueue")
    wait_until(lambda: all(cluster.phase(name) == "Completed" for name in waiting), "completed")
    patch = ("--subresource=status", "--type=merge", '-p={"status":{"state":"Closed"}}')
    cluster.kubectl("patch", "queue", "load", *patch)
    wait_until(lambda: shown("team")["STATE"] == "Closed", "closed by the state of the one above")


def test_kubectl_pumice_suspends_and_resumes_jobs_and_closes_and_opens_queues(
    cluster: Namespace, add_node: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    """The plugin is found by the name of its file on PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    config = str(cluster.plane.kubeconfig)

    def kubectl_pumice(*words: str) -> str:
        command = [str(cluster.plane.binaries["kubectl"]), "pumice", *words]
        ran = subprocess.run(
            command,
            env={**os.environ, "PATH": path, "KUBECONFIG": config},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return ran.stdout + ran.stderr

    add_node("plugged", "2")
    make_queue("plugin-team")
    manifest = job("train", [task("w", 2, cpu="1")], queue="plugin-team")
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    cluster.await_phase("train", "Running")
    here = ("-n", cluster.name)
    row = kubectl_pumice("job", "list", *here).splitlines()[1]
    assert row.split()[:6] == ["train", "plugin-team", "Running", "2", "2/2", "-"]
    suspended = kubectl_pumice("job", "suspend", "train", "--wait", *here)
    assert suspended == "job.batch.volcano.sh/train suspended (Aborted)\n"
    closed = kubectl_pumice("queue", "close", "plugin-team")
    assert closed.startswith("queue.scheduling.volcano.sh/plugin-team closed (Clos")
    opened = kubectl_pumice("queue", "open", "plugin-team")
    assert opened == "queue.scheduling.volcano.sh/plugin-team opened (Open)\n"
    resumed = kubectl_pumice("job", "resume", "train", "--wait", *here)
    assert resumed == "job.batch.volcano.sh/train resumed (Running)\n"
    assert cluster.names(COMMAND) == []


def test_deletion_leaves_nothing_behind(cluster: Namespace, add_node: Callable[..., str]) -> None:
    add_node("roomy", "8")
    manifest = job("gone", [task("w", 2, cpu="1")], plugins={"svc": []})
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    cluster.await_phase("gone", "Running")
    cluster.kubectl("delete", "vcjob/gone", "--wait=false")

    def left() -> list[str]:
        names = cluster.names(JOB, POD_GROUP, POD, SERVICE, NETWORK_POLICY, CONFIG_MAP)
        return [each for each in names if each != "kube-root-ca.crt"]

    # The garbage collector of Kubernetes notices a new CRD only every half minute.
    wait_until(lambda: not left(), "nothing is left", 90)


def test_a_restart_of_every_component_loses_nothing(
    cluster: Namespace, installation: Installation, add_node: Callable[..., str]
) -> None:
    add_node("steady", "8")
    for component in ("controller", "scheduler"):
        installation.stop_leader(component)
    manifest = job(
        "survivor", [task("w", 3, cpu="1", annotations={"pumice.dev/run-duration": "1s"})]
    )
    del manifest["metadata"]["namespace"]
    cluster.apply(manifest)
    installation.start("controller", "scheduler")
    cluster.await_phase("survivor", "Running", "Completed", seconds=40)
    installation.stop_leader("controller")
    installation.start("controller")
    cluster.await_phase("survivor", "Completed", seconds=60)
    assert len(cluster.pods()) == 3
