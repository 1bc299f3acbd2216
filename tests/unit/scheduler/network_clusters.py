"""Clusters of the rows about a network of HyperNodes."""

from typing import Any

import msgspec

from pumice.api.hypernodes import HyperNode
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.scheduler import ClusterState, load_config, run_cycle
from tests.unit.scheduler.network_trees import hyper_node
from tests.unit.scheduler.scenarios import NOW, Raw, config_text, load_document

DOCUMENT = load_document("network_topology.yaml")
CASES: list[Raw] = DOCUMENT["cases"]
GPU = "nvidia.com/gpu"


def topology(said: Raw) -> Raw | None:
    """`networkTopology` of what a case says."""
    if "topology" in said:
        found: Raw = said["topology"]
        return found
    if "hard" in said:
        return {"mode": "hard", "highestTierAllowed": said["hard"]}
    return {"mode": "soft"} if said.get("soft") else None


def pod(name: str, requests: Raw, node: str = "", **fields: Any) -> Raw:
    """A pod of the gang, or of others."""
    status = {"phase": "Running" if node else "Pending"} | fields.pop("status", {})
    spec: Raw = {
        "schedulerName": "volcano",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
    }
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns"} | fields.pop("metadata", {}),
        "spec": spec | fields,
        "status": status,
    }


def gang_manifests(gang: Raw) -> list[Raw]:
    """The PodGroup of a case, and its pods."""
    count, cpu = gang["pods"], gang["cpu"]
    total = count + gang.get("empty", 0)
    minimum = gang.get("min", total)
    spec: Raw = {"minMember": minimum, "queue": "default"}
    spec["minResources"] = {"cpu": str(min(minimum, count) * cpu)}
    if gang.get("one_task"):
        spec["minResources"]["pods"] = str(minimum)
        spec["minTaskMember"] = {"worker": minimum}
    if said := topology(gang):
        spec["networkTopology"] = said
    parts = gang.get("parts")
    if parts is not None:
        policy: Raw = {"name": "worker", "matchLabelKeys": ["volcano.sh/partition-id"]}
        policy |= {"subGroupSize": parts["size"], "minSubGroups": parts["min"]}
        if said := topology(parts):
            policy["networkTopology"] = said
        spec["subGroupPolicy"] = [policy]
    found: list[Raw] = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "pg", "namespace": "ns"},
            "spec": spec,
            "status": {"phase": "Running" if gang.get("running") else gang.get("phase", "Inqueue")},
        }
    ]
    for index in range(total):
        cpus = gang.get("sizes", [cpu] * count)
        requests = {"cpu": str(cpus[index])} if index < count else {}
        if "devices" in gang:
            requests[GPU] = str(gang["devices"])
        labels = {"app": "x"}
        if parts is not None:
            labels["volcano.sh/partition-id"] = str(index // parts["size"])
        metadata = {
            "name": f"pg-worker-{index}",
            "labels": labels,
            "annotations": {
                "scheduling.k8s.io/group-name": "pg",
                "volcano.sh/task-spec": "worker",
            },
        }
        fields: Raw = {"metadata": {"namespace": "ns"} | metadata}
        if index in gang.get("nominated", {}):
            fields["status"] = {"nominatedNodeName": gang["nominated"][index]}
        if gang.get("apart"):
            term = {
                "labelSelector": {"matchLabels": {"app": "x"}},
                "topologyKey": "kubernetes.io/hostname",
            }
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            fields["affinity"] = {"podAntiAffinity": required}
        found.append(pod("", requests, gang.get("running", {}).get(index, ""), **fields))
    return found


def manifests(case: Raw) -> list[Raw]:
    """All objects of a case."""
    found: list[Raw] = []
    for name in case.get("nodes", [f"n{index}" for index in range(8)]):
        amounts = {"cpu": "8", "memory": "64Gi", "pods": "110"}
        if "devices" in case:
            amounts[GPU] = str(case["devices"])
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {
                    "allocatable": amounts,
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
    tree = case.get("tree", "T8")
    members = {} if tree == "none" else DOCUMENT["trees"][tree]
    names = case.get("names", {})
    for name, fields in (members | case.get("more", {})).items():
        if name in case.get("without", ()):
            continue
        said = {"tierName": names[fields["tier"]]} if fields["tier"] in names else {}
        found.append(hyper_node(name, **({"created": 1.0} | fields | said)))
    if "queue" in case:
        found.append(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": "default"},
                "spec": {"weight": 1} | case["queue"],
                "status": {"state": "Open"},
            }
        )
    for field in ("used", "leaving"):
        for node, cpu in case.get(field, {}).items():
            other = pod(f"{field}-{node}", {"cpu": str(cpu)}, node)
            if field == "leaving":
                other["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
            found.append(other)
    for node, devices in case.get("used_devices", {}).items():
        found.append(pod(f"devices-{node}", {GPU: str(devices)}, node))
    return found + gang_manifests(case["gang"])


def configuration(case: Raw) -> str:
    """The configuration of a case."""
    plugins = case.get("plugins", ["gang", "predicates", "network-topology-aware"])
    return config_text([plugins], case.get("actions", ["allocate"]))


KINDS: dict[str, tuple[type, str]] = {
    "Node": (Node, "set_node"),
    "HyperNode": (HyperNode, "set_hyper_node"),
    "Queue": (Queue, "set_queue"),
    "PodGroup": (PodGroup, "set_pod_group"),
    "Pod": (Pod, "set_pod"),
}


class Cluster:
    """A cluster in which bound pods start to run."""

    def __init__(self, case: Raw, known: dict[tuple[str, str], Raw] | None = None) -> None:
        """A cluster of a case, or with these objects."""
        self.state = ClusterState()
        self.config = load_config(configuration(case))
        self.manifests = known or {
            (each["kind"], each["metadata"]["name"]): each for each in manifests(case)
        }
        for each in self.manifests.values():
            self.show(each)

    def show(self, manifest: Raw) -> None:
        """Add or replace an object."""
        kind, method = KINDS[manifest["kind"]]
        getattr(self.state, method)(msgspec.convert(manifest, kind))

    def make_again(self, name: str) -> None:
        """Delete a pod, and create another one of the same name."""
        manifest = self.manifests["Pod", name]
        self.state.remove_pod("ns", name)
        manifest["spec"].pop("nodeName", None)
        manifest["status"]["phase"] = "Pending"
        self.show(manifest)

    def end(self, name: str) -> None:
        """Remove a pod, if it is there."""
        if self.manifests.pop(("Pod", name), None) is not None:
            self.state.remove_pod("ns", name)

    def used(self, node: str) -> int:
        """CPUs that pods use of a node."""
        record = self.state.nodes.records[node]
        return sum(int(task.shape.vector[0]) for task in record.tasks.values()) // 1000

    def cycle(self, most: int | None = None) -> Any:
        """One cycle, after which what is bound runs, or so many pods of it in no order."""
        result = run_cycle(self.state, self.config, NOW)
        for error in (result.error, *result.errors.values()):
            if error is not None:
                raise error
        for key, node in sorted(result.binds.items(), reverse=True)[:most]:
            manifest = self.manifests["Pod", key.partition("/")[2]]
            manifest["spec"]["nodeName"] = node
            manifest["status"]["phase"] = "Running"
            self.show(manifest)
        return result

    def nodes(self) -> list[str]:
        """Nodes of the gang's pods, in their order."""
        pods = [
            each for (kind, name), each in self.manifests.items()
            if kind == "Pod" and name.startswith("pg-")
        ]  # fmt: skip
        return [each["spec"].get("nodeName", "") for each in pods]
