"""Where gangs go in a network of HyperNodes, on the core and through `pumice simulate`."""

import copy
from typing import Any

import msgspec
import pytest

from pumice.api.hypernodes import HyperNode
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.api.volumes import PersistentVolume
from pumice.scheduler import ClusterState, load_config, run_cycle
from pumice.scheduler.options import open_session
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.network_trees import hyper_node
from tests.unit.scheduler.scenarios import (
    NOW,
    Raw,
    Scenario,
    case_id,
    config_text,
    load_document,
)
from tests.unit.scheduler.volume_scenarios import (
    HOST,
    claim,
    node_row,
    pod_volumes,
    storage_classes,
    volume,
)

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


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_placement(case: Raw) -> None:
    cluster, expect = Cluster(case), case["expect"]
    first = cluster.cycle()
    if "domain" in expect:
        inside = DOCUMENT["trees"]["T8"][expect["domain"]]["nodes"]
        assert set(cluster.nodes()) <= set(inside)
    else:
        nodes = expect.get("nodes") or [""] * len(cluster.nodes())
        assert cluster.nodes() == nodes
    promised = [
        first.pipelined.get(f"ns/{name}", "")
        for kind, name in cluster.manifests
        if kind == "Pod" and name.startswith("pg-")
    ]
    assert promised == expect.get("promised", [""] * len(promised))
    if "reason" in expect:
        assert first.pending["ns/pg"].summary == expect["reason"]
    if expect.get("network", {}).get("hyperNode"):
        (condition,) = cluster.state.jobs["ns/pg"].status.conditions or []
        said = "its pods are in HyperNode {hyperNode} (tier {tier})".format(**expect["network"])
        assert (condition.type, condition.message) == ("Scheduled", said)
    if "phase" in expect:
        assert cluster.state.jobs["ns/pg"].phase == expect["phase"]
    if "about" in expect:
        assert expect["about"] in first.pending["ns/pg"].summary
    before = cluster.nodes()
    if "leaving" not in case:
        for _ in range(5):
            cluster.state.parked.wake_all()
            cluster.state.settled = None
            cluster.cycle()
        assert cluster.nodes() == before


FULL = {f"n{index}": 6 for index in range(8)}


@pytest.mark.parametrize("used", [5, 4])
def test_a_gang_that_no_domain_can_hold_is_not_tried_again(used: int) -> None:
    """One event may wake hundreds of gangs; what domains have free is added up once for all of them."""
    half_full = {f"n{index}": 4 + index % 2 * 2 for index in range(8)}
    cluster = Cluster({"used": half_full, "gang": {"pods": 2, "cpu": 4, "hard": 1}})
    cluster.cycle()
    assert cluster.nodes() == ["", ""]
    cluster.show(pod("used-n7", {"cpu": str(used)}, "n7"))
    cluster.state.settle()
    session = open_session(cluster.state, cluster.config, NOW)
    session.refused._renewed = ()  # gangs that are tried in any case
    assert session.is_refused_as_before(cluster.state.jobs["ns/pg"]) is (used == 5)
    session.close()


@pytest.mark.parametrize(
    ("gang", "enters"),
    [
        ({"pods": 3, "cpu": 5, "hard": 1}, True),
        ({"pods": 3, "cpu": 5, "soft": True}, False),
        ({"pods": 3, "cpu": 5, "parts": {"size": 3, "min": 1, "hard": 1}}, True),
        ({"pods": 3, "cpu": 5, "parts": {"size": 1, "min": 3, "hard": 1}}, False),
        ({"pods": 3, "cpu": 5, "topology": {"highestTierName": "none"}}, True),
    ],
    ids=["gang", "wish", "partition", "small partitions", "unknown tier"],
)
def test_no_room_is_kept_at_the_gate_for_a_gang_that_no_domain_could_hold(
    gang: Raw, enters: bool
) -> None:
    """Until a domain could: 15 cpu are in two nodes of 8, but three pods of 5 are not."""
    full = {f"n{index}": 4 for index in range(8)}
    plugins = ["gang", "predicates", "network-topology-aware", "overcommit"]
    actions = ["enqueue", "allocate"]
    cluster = Cluster({"used": full, "gang": gang, "plugins": plugins, "actions": actions})
    late = copy.deepcopy(cluster.manifests["PodGroup", "pg"])
    late["metadata"]["name"] = "late"
    late["spec"] = {"minMember": 1, "queue": "default", "minResources": {"cpu": "40"}}
    late["status"] = {"phase": "Pending"}
    cluster.show(late)
    cluster.cycle()
    job = cluster.state.jobs["ns/pg"]
    assert job.is_too_large is enters
    assert (cluster.state.jobs["ns/late"].phase == "Inqueue") is enters
    if job.group is not None and job.group.spec.network_topology and "hard" in gang:
        cluster.show(hyper_node("s0", nodes=["n0", "n1", "n2"]))
        cluster.cycle()
        assert not job.is_too_large


def test_a_hyper_node_that_comes_wakes_the_gang_that_waits_for_it() -> None:
    used = FULL | {"n1": 4, "n4": 4}
    cluster = Cluster({"used": used, "gang": {"pods": 2, "cpu": 4, "hard": 1}})
    cluster.cycle()
    assert cluster.nodes() == ["", ""]
    cluster.show(hyper_node("t", nodes=["n1", "n4"]))
    cluster.cycle()
    assert cluster.nodes() == ["n1", "n4"]


def test_what_a_trial_takes_is_given_back_when_it_is_undone() -> None:
    """Room, volumes that claims were to be bound to, and counts of pods that others must be apart from."""
    names = ["n0", "n1", "n2", "n3"]
    apart = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOST}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    here = {name: volume("local", 10, name) for name in ("n0", "n2")}
    limit = {"topology": {"highestTierAllowed": 1}}
    scenario = Scenario(
        {
            "nodes": [node_row(name, "a", 8) for name in names],
            "hyper_nodes": {"h1": {"nodes": names[:2]}, "h2": {"nodes": names[2:]}},
            "storage_classes": storage_classes(),
            "volumes": here,
            "claims": {f"c{index}": claim(f"c{index}", {"class": "local"}) for index in range(2)},
            "podgroups": [["ns", "pg", "default", 2, "Inqueue", limit]],
            "pods": [
                ["ns", f"p-{index}", "", "Pending", 1, "1Gi", "pg", {"labels": {"app": "x"}, "affinity": rules, "spec": {"volumes": pod_volumes([f"c{index}"])}}]
                for index in range(2)
            ],
        },
        config_text([["gang", "predicates", "network-topology-aware"]], ["allocate"]),
    )  # fmt: skip
    before = dump(scenario.state)
    result = scenario.cycle()
    assert result.binds == {}
    assert (
        "in one HyperNode of tier 1 or lower; h1 has room for 1" in result.pending["ns/pg"].summary
    )
    assert dump(scenario.state) == before
    claims = scenario.state.claims
    shapes = [task.shape.claims for task in scenario.state.tasks.values()]
    assert [claims.choices.of(each) for each in shapes] == [{}, {}]
    manifest = {"metadata": {"name": "n3"}} | volume("local", 10, "n3")
    scenario.state.set_volume(msgspec.convert(manifest, PersistentVolume))
    assert set(scenario.cycle().binds.values()) == {"n2", "n3"}
    chosen = [choice.volume for each in shapes for choice in claims.choices.of(each).values()]
    assert sorted(chosen) == ["n2", "n3"]


@pytest.mark.parametrize(("used", "trials", "nodes"), [({}, 1, "n0 n1 n2 n3"), ({"n5": 1}, 2, "n4 n5 n6 n7")])  # fmt: skip
def test_domains_that_are_alike_share_a_trial(used: Raw, trials: int, nodes: str) -> None:
    gang = {"pods": 4, "cpu": 7, "hard": 2, "parts": {"size": 2, "min": 2, "hard": 1}}
    cluster = Cluster({"used": used, "gang": gang})
    assert cluster.cycle().decided == 4 * trials
    assert cluster.nodes() == nodes.split()


def test_domains_follow_nodes_whose_rows_move() -> None:
    """A node that comes, in no HyperNode, moves the rows of all others."""
    cluster = Cluster({"used": FULL, "gang": {"pods": 2, "cpu": 8, "hard": 1}})
    cluster.cycle()
    first = copy.deepcopy(cluster.manifests["Node", "n0"])
    first["metadata"]["name"] = "m0"
    cluster.show(first)
    cluster.end("used-n2")
    cluster.end("used-n3")
    cluster.cycle()
    assert cluster.nodes() == ["n2", "n3"]
    ready = first["status"]["conditions"][0]
    ready["status"] = "False"
    cluster.show(first)
    cluster.cycle()
    assert len(cluster.state.levels.rows(cluster.state.network.root)) == 8
