"""Clusters from rows: a case names nodes, queues, gangs and pods, a scenario runs cycles over them.

Rows are those of the case files:

* node: `[name, cpu, memory, {pods, labels, taints, unschedulable, ready, resources}]`, 110 pods unless said
* queue: `[name, {fields of the spec, state, annotations}]`
* podgroup: `[namespace, name, queue, minMember, phase, {minTask, prio, minRes, policies, topology, annotations, created}]`;
  `policies` are those of sub-groups
* pod: `[namespace, name, node, phase, cpu, memory, podgroup, {role, selector, prio, resources, deleting, placed, spec, preemptable, …}]`
* claims, volumes, quotas and storage_classes: manifests, of which only the name stands outside `metadata`
* csi_nodes: `{node: {driver: volumes that it can attach}}`
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import yaml

from pumice.api.budgets import ResourceQuota
from pumice.api.hypernodes import HyperNode
from pumice.api.nodes import Node, PriorityClass
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler import (
    Budget,
    ClusterState,
    Config,
    CycleResult,
    SchedulerRegistry,
    load_config,
    run_cycle,
)
from pumice.scheduler.options import SWITCHES
from tests.kit.tables import table
from tests.unit.scheduler.network_trees import hyper_node

NOW = 1_700_000_000.0

Raw = dict[str, Any]

_SWITCH_OF = {name.removeprefix("enabled").removeprefix("enable"): name for name in SWITCHES}


def load_document(file: str) -> Any:
    """A case file."""
    return table(f"scheduler/{file.removesuffix('.yaml')}")


def load_cases(file: str, section: str | None = None) -> list[Raw]:
    """Rows of a case file, or of one of its sections."""
    document = load_document(file)
    rows: list[Raw] = document[section] if section else document
    return rows


def conf(name: str) -> list[list[Raw | str]]:
    """Tiers of plugins by the name that cases give them."""
    tiers: list[list[Raw | str]] = load_document("confs.yaml")[name]
    return tiers


def case_id(case: Raw) -> str:
    """Name of a case in test reports."""
    return str(case.get("title") or case["id"]).replace(" ", "-")


def config_text(
    tiers: Sequence[Sequence[Raw | str]], actions: Sequence[str] = ("enqueue", "allocate")
) -> str:
    """A configuration file.

    A plugin is its name, with all switches at their defaults, or `{name: [switches that are on], args: {…}}`
    with the others off.
    """
    document: Raw = {"actions": ", ".join(actions), "tiers": []}
    for tier in tiers:
        plugins = []
        for entry in tier:
            if isinstance(entry, str):
                plugins.append({"name": entry})
                continue
            rest = dict(entry)
            arguments = rest.pop("args", {})
            ((name, switches),) = rest.items()
            option: Raw = {"name": name, "arguments": arguments}
            if switches is not None:
                option |= {_SWITCH_OF[key]: key in switches for key in _SWITCH_OF}
            plugins.append(option)
        document["tiers"].append({"plugins": plugins})
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False)


WITHOUT_SHARES = config_text([["priority", "gang"], ["predicates", "binpack"]])
"""A configuration for tests in which neither queues nor victims matter."""


def case_config(case: Raw) -> str | None:
    """The configuration of a case: its `plugins`, or those of the set that `conf` names; None for Pumice's own."""
    tiers = case.get("plugins") or (
        load_document("confs")[case["conf"]] if "conf" in case else None
    )
    if tiers is None:
        return None
    return config_text(tiers, case.get("actions", ("enqueue", "allocate")))


def node(row: Sequence[Any]) -> Node:
    """A node from its row."""
    name, cpu, memory, *rest = row
    options: Raw = rest[0] if rest else {}
    amounts = {
        "cpu": str(cpu),
        "memory": str(memory),
        "pods": str(options.get("pods", 110)),
        **{key: str(value) for key, value in options.get("resources", {}).items()},
    }
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": options.get("labels", {})},
            "spec": {
                "unschedulable": options.get("unschedulable", False),
                "taints": options.get("taints", []),
            },
            "status": {
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": str(options.get("ready", True))}],
            },
        },
        Node,
    )


def queue(row: Sequence[Any]) -> Queue:
    """A queue from its row."""
    name, *rest = row
    options: Raw = dict(rest[0]) if rest else {}
    state = options.pop("state", "Open")
    annotations = options.pop("annotations", {})
    return msgspec.convert(
        {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"weight": 1} | options,
            "status": {"state": state},
        },
        Queue,
    )


def pod_group(row: Sequence[Any]) -> PodGroup:
    """A PodGroup from its row."""
    namespace, name, queue_name, minimum, phase, *rest = row
    options: Raw = rest[0] if rest else {}
    spec: Raw = {"minMember": minimum, "queue": queue_name}
    if "minTask" in options:
        spec["minTaskMember"] = options["minTask"]
    if "prio" in options:
        spec["priorityClassName"] = options["prio"]
    if "policies" in options:
        spec["subGroupPolicy"] = options["policies"]
    if "topology" in options:
        spec["networkTopology"] = options["topology"]
    if "minRes" in options:
        spec["minResources"] = options["minRes"]
    return msgspec.convert(
        {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "annotations": options.get("annotations", {}),
                "creationTimestamp": options.get("created"),
            },
            "spec": spec,
            "status": {"phase": phase, "conditions": options.get("conditions", [])},
        },
        PodGroup,
    )


def pod_manifest(row: Sequence[Any]) -> Raw:
    """A pod's manifest from its row."""
    namespace, name, node_name, phase, cpu, memory, group, *rest = row
    options: Raw = dict(rest[0]) if rest else {}
    requests = {
        key: str(value)
        for key, value in {
            "cpu": cpu,
            "memory": memory,
            **options.get("resources", {}),
        }.items()
        if str(value) != "0"
    }
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    if "role" in options:
        annotations["volcano.sh/task-spec"] = options["role"]
    ports = [{"containerPort": port, "hostPort": port} for port in options.get("ports", [])]
    spec: Raw = {
        "schedulerName": options.get("scheduler", "volcano"),
        "containers": [{"name": "c", "resources": {"requests": requests}, "ports": ports}],
        "nodeSelector": options.get("selector", {}),
        "tolerations": options.get("tolerations", []),
        "schedulingGates": [{"name": gate} for gate in options.get("gates", [])],
    }
    if "affinity" in options:
        spec["affinity"] = options["affinity"]
    spec |= options.get("spec", {})
    if "prio" in options:
        spec["priority"] = options["prio"]
    if node_name:
        spec["nodeName"] = node_name
    labels = dict(options.get("labels", {}))
    if "preemptable" in options:
        labels["volcano.sh/preemptable"] = str(options["preemptable"]).lower()
    if "policy" in options:
        spec["preemptionPolicy"] = options["policy"]
    metadata: Raw = {
        "namespace": namespace,
        "name": name,
        "annotations": annotations | options.get("annotations", {}),
        "labels": labels,
        "uid": options.get("uid", ""),
        "creationTimestamp": options.get("created"),
    }
    if options.get("deleting"):
        metadata["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    status: Raw = {"phase": phase}
    if "placed" in options:
        placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": options["placed"]}
        status["conditions"] = [placed]
    return {"metadata": metadata, "spec": spec, "status": status}


def pod(row: Sequence[Any]) -> Pod:
    """A pod from its row."""
    return msgspec.convert(pod_manifest(row), Pod)


def expand(row: Raw) -> list[list[Any]]:
    """Rows of a `pod_sets` entry: `{pg, role, count, cpu, memory, …}` makes `<pg>-<role>-<i>`.

    With `partition`, so many pods each have the labels of a partition of the role.
    """
    options = {key: value for key, value in row.items() if key not in _SET_FIELDS}
    size = row.get("partition")
    stem = f"{row['pg']}-{row['role']}" if row.get("role") else str(row["pg"])
    if row.get("role"):
        options["role"] = row["role"]
    return [
        [
            row.get("ns", "ns"),
            f"{stem}-{index}",
            "",
            "Pending",
            row.get("cpu", 1),
            row.get("memory", "1Gi"),
            row["pg"],
            options | {"labels": _of_partition(row["role"], index // size)} if size else options,
        ]
        for index in range(row["count"])
    ]


_SET_FIELDS = ("pg", "role", "count", "cpu", "memory", "ns", "partition")


def _of_partition(role: str, number: int) -> Raw:
    return {"volcano.sh/task-spec": role, "volcano.sh/partition-id": str(number)}


def partitions(role: str, size: int, minimum: int = 0) -> Raw:
    """The policy that the Job controller makes of a task's partitions."""
    return {
        "name": role,
        "subGroupSize": size,
        "minSubGroups": minimum,
        "labelSelector": {"matchLabels": {"volcano.sh/task-spec": role}},
        "matchLabelKeys": ["volcano.sh/partition-id"],
    }


class Scenario:
    """A cluster of a case, and cycles over it."""

    def __init__(self, case: Raw, config: Config | str | None = None, **state: Any) -> None:
        self.state = ClusterState(**state)
        if not isinstance(config, Config):
            config = load_config(config)
        self.config = config
        self.pods: dict[str, Raw] = {}
        for row in case.get("nodes", []):
            self.state.set_node(node(row))
        for row in case.get("queues", []):
            self.state.set_queue(queue(row))
        for name, value in case.get("classes", {}).items():
            fields = value if isinstance(value, dict) else {"value": value}
            manifest = {"metadata": {"name": name}} | fields
            self.state.set_priority_class(msgspec.convert(manifest, PriorityClass))
        for name, storage_class in case.get("storage_classes", {}).items():
            manifest = {"metadata": {"name": name}} | storage_class
            self.state.set_storage_class(msgspec.convert(manifest, StorageClass))
        for name, drivers in case.get("csi_nodes", {}).items():
            listed = [{"name": each, "allocatable": {"count": drivers[each]}} for each in drivers]
            manifest = {"metadata": {"name": name}, "spec": {"drivers": listed}}
            self.state.set_csi_node(msgspec.convert(manifest, CsiNode))
        for name, claim in case.get("claims", {}).items():
            claim = {"metadata": {"name": name, "namespace": "ns"}} | claim
            self.state.set_claim(msgspec.convert(claim, PersistentVolumeClaim))
        for name, volume in case.get("volumes", {}).items():
            manifest = {"metadata": {"name": name, "labels": volume.get("labels")}, **volume}
            self.state.set_volume(msgspec.convert(manifest, PersistentVolume))
        for name, quota in case.get("quotas", {}).items():
            manifest = {"metadata": {"name": name, "namespace": "ns"}} | quota
            self.state.set_quota(msgspec.convert(manifest, ResourceQuota))
        for name, fields in case.get("hyper_nodes", {}).items():
            manifest = hyper_node(name, **fields)
            self.state.set_hyper_node(msgspec.convert(manifest, HyperNode))
        for row in case.get("podgroups", []):
            self.state.set_pod_group(pod_group(row))
        for row in case.get("pods", []):
            self.add_pod(row)
        for entry in case.get("pod_sets", []):
            for row in expand(entry):
                self.add_pod(row)

    def add_pod(self, row: Sequence[Any]) -> None:
        """Add or replace a pod."""
        manifest = pod_manifest(row)
        self.pods[f"{row[0]}/{row[1]}"] = manifest
        self.show(manifest)

    def show(self, manifest: Raw) -> None:
        """Add or replace a pod by its manifest."""
        self.state.set_pod(msgspec.convert(manifest, Pod))

    def cycle(self, now: float = NOW, budget: Budget | None = None) -> CycleResult:
        """One cycle, in which nothing fails unexpectedly."""
        result = run_cycle(self.state, self.config, now, budget=budget)
        for error in (result.error, *result.errors.values()):
            if error is not None:
                raise error
        return result

    def wake_all(self) -> None:
        """Have the next cycle try every gang that waits, whatever earlier cycles found out."""
        self.state.settled = None
        self.state.parked.wake_all()

    def start(self, result: CycleResult) -> None:
        """Let the bound pods run, and let evicted and terminating ones go."""
        for key, node_name in result.binds.items():
            manifest = self.pods[key]
            manifest["spec"]["nodeName"] = node_name
            manifest["status"]["phase"] = "Running"
            self.show(manifest)
        for key, manifest in list(self.pods.items()):
            if key in result.evicted or "deletionTimestamp" in manifest["metadata"]:
                self.state.remove_pod(*key.split("/"))
                del self.pods[key]

    def show_all(self, group: str, phase: str) -> None:
        """Let all bound pods of a PodGroup have a phase."""
        for key, manifest in self.pods.items():
            node_name = self.state.tasks[key].node
            if node_name and key.rpartition("-")[0] == group:
                manifest["spec"]["nodeName"] = node_name
                manifest["status"]["phase"] = phase
                self.show(manifest)

    def phase(self, key: str) -> str:
        """Phase of a PodGroup."""
        return self.state.gangs.statuses[key].phase

    def conditions(self, key: str) -> dict[str, str]:
        """Conditions of a PodGroup: type to status."""
        return {each.type: each.status for each in self.state.gangs.statuses[key].conditions or ()}


def with_plugins(registry: SchedulerRegistry, *specs: Any) -> SchedulerRegistry:
    """A registry in which these plugins take the place of others of their names."""
    plugins: Mapping[str, Any] = {**registry.plugins, **{spec.name: spec for spec in specs}}
    return SchedulerRegistry(plugins, registry.actions)
