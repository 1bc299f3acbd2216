"""The real kubectl, unchanged, against the embedded server."""

import asyncio
import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import CONFIG_MAP, JOB, NAMESPACE, NODE, POD, QUEUE
from pumice.embedded import EmbeddedCluster
from tests.kit.builders import job, queue, task
from tests.support.controlplane.builder import Builder

# kubectl comes with the control plane's binaries; the server under test is the embedded one.
pytestmark = pytest.mark.binaries


@dataclass
class Kubectl:
    """kubectl with the cluster's kubeconfig."""

    program: Path
    kubeconfig: Path

    async def __call__(self, *arguments: str, stdin: Any = None, fails: bool = False) -> str:
        """What it prints, on both channels when it is to fail."""
        process = await asyncio.create_subprocess_exec(
            str(self.program),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                "KUBECONFIG": str(self.kubeconfig),
                "KUBECACHEDIR": str(self.kubeconfig.parent / "cache"),
            },
        )
        text = "" if stdin is None else json.dumps(stdin)
        out, error = await asyncio.wait_for(process.communicate(text.encode()), 60)
        assert (process.returncode != 0) is fails, f"{arguments}: {out!r} {error!r}"
        return out.decode() + (error.decode() if fails else "")


@pytest.fixture(scope="session")
def program() -> Path:
    return Builder().ensure()["kubectl"]


@pytest.fixture
def kubectl(program: Path, kubeconfig: Path) -> Kubectl:
    return Kubectl(program, kubeconfig)


async def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    items = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "q"},
            "spec": {"weight": 2},
        },
        job("j", [task("t", 2)]),
    ]
    manifest = {"apiVersion": "v1", "kind": "List", "items": items}

    created = await kubectl("apply", "-f", "-", stdin=manifest)
    again = await kubectl("apply", "-f", "-", stdin=manifest)
    items[3]["spec"]["tasks"][0]["replicas"] = 3
    items[1]["spec"]["template"]["spec"]["containers"][0]["image"] = "j"
    changed = await kubectl("apply", "-f", "-", stdin=manifest)
    difference = await kubectl("diff", "-f", "-", stdin=manifest)

    words = [[line.split()[-1] for line in each.splitlines()] for each in (created, again, changed)]
    assert words == [
        ["created"] * 4,
        ["unchanged"] * 4,
        ["unchanged", "configured", "unchanged", "configured"],
    ]
    assert difference == ""


async def test_server_side_apply_and_its_conflicts(kubectl: Kubectl) -> None:
    manifest = queue("q", weight=2, state="")
    del manifest["status"]

    await kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    again = await kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    await kubectl("patch", "queue", "q", "--type=merge", "-p", '{"spec": {"weight": 3}}')
    conflict = await kubectl("apply", "--server-side", "-f", "-", stdin=manifest, fails=True)
    await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)

    assert again.strip().endswith("serverside-applied")
    assert 'conflict with "kubectl-patch"' in conflict
    weight = await kubectl("get", "queue", "q", "-o", "jsonpath={.spec.weight}")
    assert weight == "2"


async def test_a_bad_manifest_is_refused_with_every_error(kubectl: Kubectl) -> None:
    bad = job("bad", [task("A_B", -1)], minAvailable=-1)

    dry = await kubectl("apply", "--dry-run=server", "-f", "-", stdin=bad, fails=True)
    typo = await kubectl(
        "create", "-f", "-", stdin=job("typo", [task("t")], minAvailabel=1), fails=True
    )

    for field in ("spec.minAvailable", "spec.tasks[0].name", "spec.tasks[0].replicas"):
        assert field in dry
    assert 'unknown field "spec.minAvailabel"' in typo


async def test_tables(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    made = cluster.store.create(job("j", queue="q"))
    status = {"state": {"phase": "Running"}, "minAvailable": 1, "running": 1}
    cluster.store.update_status({**made, "status": status})

    jobs = await kubectl("get", "vcjob")
    wide = await kubectl("get", "vcjob", "j", "-o", "wide")
    nodes = await kubectl("get", "nodes", "--no-headers")

    assert jobs.splitlines()[0].split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert jobs.splitlines()[1].split()[:4] == ["j", "Running", "1", "1"]
    assert "q" in wide.splitlines()[1].split()
    assert nodes.split()[:2] == ["node1", "Ready"]


async def test_kubectl_makes_objects_itself(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "c", "-n", "team", "--from-literal=a=b")
    await kubectl("create", "secret", "generic", "s", "-n", "team", "--from-literal=a=b")
    await kubectl("create", "serviceaccount", "a", "-n", "team")
    await kubectl("create", "service", "clusterip", "s", "-n", "team", "--tcp=80:8080")
    await kubectl("create", "quota", "q", "-n", "team", "--hard=cpu=2")
    await kubectl("create", "role", "r", "-n", "team", "--verb=get", "--resource=pods")
    await kubectl("create", "clusterrolebinding", "b", "--clusterrole=x", "--user=y")
    await kubectl("create", "priorityclass", "p", "--value=5")
    await kubectl("run", "p", "-n", "team", "--image=i")

    made = cluster.store.get(CONFIG_MAP, "c", "team")
    assert made is not None
    assert made["data"] == {"a": "b"}
    ports = await kubectl("get", "service", "s", "-n", "team", "-o", "jsonpath={.spec.ports[0]}")
    assert json.loads(ports)["targetPort"] == 8080
    await kubectl("delete", "namespace", "team")
    assert cluster.store.get(NAMESPACE, "team") is None
    assert cluster.store.list(POD, "team") == []


async def test_waiting_for_pods_and_draining_nodes(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"nodeName": "node1", "containers": [{"name": "c", "image": "i"}]},
    }
    short = {**pod, "metadata": {"name": "short", "annotations": {keys.RUN_DURATION: "50ms"}}}
    cluster.store.create(pod)
    cluster.store.create(short)

    await kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=50s")
    await kubectl("wait", "pod/short", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=50s")
    described = await kubectl("describe", "pod", "p")
    await kubectl("drain", "node1", "--force", "--ignore-daemonsets", "--timeout=50s")
    node = cluster.store.get(NODE, "node1")
    await kubectl("uncordon", "node1")

    assert "node1" in described
    assert node is not None
    assert node["spec"]["unschedulable"] is True
    assert cluster.store.list(POD) == []
    assert cluster.store.list(NODE, fields="spec.unschedulable=true") == []


async def test_deletion_waits_until_the_object_is_gone(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    cluster.store.create(job("j"))
    owner = cluster.store.get(JOB, "j", "default")
    assert owner is not None
    reference = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default", "ownerReferences": [reference]},
    }
    cluster.store.create(child)

    await kubectl("delete", "vj", "j", "--cascade=foreground", "--timeout=50s")

    assert cluster.store.list(JOB) == []
    assert cluster.store.list(CONFIG_MAP) == []


async def test_edits_labels_annotations_and_taints(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    cluster.store.create(queue("q", state=""))

    await kubectl("label", "queue", "q", "a=b")
    await kubectl("annotate", "queue", "q", "c=d")
    await kubectl("taint", "node", "node1", "gpu=yes:NoSchedule")
    await kubectl(
        "patch",
        "queue",
        "q",
        "--type=json",
        "-p",
        '[{"op": "add", "path": "/spec/weight", "value": 9}]',
    )

    found, node = cluster.store.get(QUEUE, "q"), cluster.store.get(NODE, "node1")
    assert found is not None
    assert node is not None
    assert (found["metadata"]["labels"], found["metadata"]["annotations"]) == (
        {"a": "b"},
        {"c": "d"},
    )
    assert found["spec"]["weight"] == 9
    assert node["spec"]["taints"] == [{"effect": "NoSchedule", "key": "gpu", "value": "yes"}]


async def test_new_kinds_are_defined_explained_and_removed(kubectl: Kubectl) -> None:
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer", "description": "How big."}},
    }
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 3},
    }

    await kubectl("apply", "-f", "-", stdin=crd)
    await kubectl("wait", "crd/widgets.example.com", "--for=condition=Established", "--timeout=50s")
    await kubectl("apply", "-f", "-", stdin=widget)
    table = await kubectl("get", "wd")
    explained = await kubectl("explain", "widget.spec")
    await kubectl("delete", "crd", "widgets.example.com", "--timeout=50s")

    assert [line.split() for line in table.splitlines()] == [["NAME", "SIZE"], ["w", "3"]]
    assert "How big." in explained
    await kubectl("get", "wd", fails=True)


async def test_kinds_whose_controllers_come_later(kubectl: Kubectl) -> None:
    template = job("j", [task("t", 2)])["spec"]
    member = {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}
    for kind, group, spec in (
        ("CronJob", "batch", {"schedule": "@daily", "jobTemplate": {"spec": template}}),
        ("JobTemplate", "flow", template),
        ("JobFlow", "flow", {"flows": [{"name": "it"}]}),
        ("HyperNode", "topology", {"tier": 1, "tierName": "rack", "members": [member]}),
    ):
        head = {"apiVersion": f"{group}.volcano.sh/v1alpha1", "kind": kind}
        await kubectl("apply", "-f", "-", stdin={**head, "metadata": {"name": "it"}, "spec": spec})
    tables = {
        name: [line.split() for line in (await kubectl("get", name)).splitlines()]
        for name in ("cronvcjob", "cronvj", "jt", "jf", "hn")
    }

    (header, row) = tables["cronvcjob"]
    assert tables["cronvj"][0] == header
    assert header == ["NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "LAST-SCHEDULE", "AGE"]
    assert row[:3] == ["it", "@daily", "false"]
    assert tables["jt"][0] == ["NAME", "MINAVAILABLE", "QUEUE", "AGE"]
    assert tables["jf"][0] == ["NAME", "STATUS", "AGE"]
    assert tables["hn"][1][:3] == ["it", "1", "rack"]
    await kubectl("explain", "jobflow.spec.flows.patch.jobSpec.tasks")


async def test_watching(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    cluster.store.create(queue("a", state=""))

    async def later() -> None:
        await asyncio.sleep(0.5)
        cluster.store.create(queue("b", state=""))

    task_ = asyncio.create_task(later())
    process = await asyncio.create_subprocess_exec(
        str(kubectl.program),
        "get",
        "queues",
        "--watch",
        "--no-headers",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "KUBECONFIG": str(kubectl.kubeconfig)},
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        names = [(await process.stdout.readline()).split()[0] for _ in range(2)]
    process.terminate()
    await process.communicate()
    await task_

    assert names == [b"a", b"b"]


async def test_what_is_known_of_the_server(kubectl: Kubectl) -> None:
    version = json.loads(await kubectl("version", "-o", "json"))
    resources = await kubectl("api-resources", "--no-headers")
    ready = await kubectl("get", "--raw", "/readyz")

    assert version["serverVersion"]["minor"] == "36"
    assert any(
        line.split()[:2] == ["podgroups", "pg,podgroup-v1beta1"] for line in resources.splitlines()
    )
    assert ready == "ok"


async def test_workloads_that_kubectl_makes_itself(kubectl: Kubectl) -> None:
    await kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2", "--port=80")
    await kubectl("scale", "deployment", "web", "--replicas=3")
    replicas = await kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")
    await kubectl("create", "job", "one", "--image=busybox", "--", "sleep", "1")
    command = "jsonpath={.spec.template.spec.containers[0].command}"

    assert replicas == "3"
    assert await kubectl("get", "jobs.batch/one", "-o", command) == '["sleep","1"]'


async def test_scaling_a_volcano_job_says_what_to_do_instead(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=job("j", [task("t", 2)]))
    said = await kubectl("scale", "vcjob", "j", "--replicas=3", fails=True)

    assert "cannot be scaled: the kind has no single number of replicas" in said
    _, _, command = said.strip().partition("change that of a task: kubectl ")
    await kubectl(*shlex.split(command))
    assert await kubectl("get", "vcjob", "j", "-o", "jsonpath={.spec.tasks[0].replicas}") == "3"
