"""Pods that wait, for the benchmarks of the scheduler core."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from benchmarks.scheduling_clusters import (
    GANGS,
    HOSTNAME,
    NAMESPACE,
    SIZE,
    ZONE,
    add_gang,
    gangs,
    pod,
    unequal,
)
from pumice.api import keys
from pumice.api.hypernodes import ExactMatch, HyperNode, HyperNodeSpec, Member, MemberSelector
from pumice.api.jobs import NetworkTopology
from pumice.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from pumice.api.podgroups import SubGroupPolicy
from pumice.api.pods import (
    Affinity,
    ClaimSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodVolume,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from pumice.api.queues import Queue, QueueSpec
from pumice.api.volumes import (
    CsiDriver,
    CsiNode,
    CsiNodeSpec,
    DriverLimit,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    StorageRequests,
    VolumeNodeAffinity,
)
from pumice.scheduler import ClusterState

TOPOLOGY = {keys.TOPOLOGY_AFFINITY: "ps,worker", keys.TOPOLOGY_ANTI_AFFINITY: "ps"}
APART = {keys.TOPOLOGY_ANTI_AFFINITY: "worker"}
PORTS = 20
QUEUES = 1000


def equal_pod(name: str, _gang: int, index: int) -> Pod:
    """A pod like all others."""
    return pod(name, "worker", index, "2")


def equal_gangs(state: ClusterState) -> None:
    """500 gangs of 20 equal pods."""
    gangs(state, GANGS, SIZE, equal_pod)


def racks(state: ClusterState) -> None:
    """HyperNodes over all nodes: racks of 16 nodes, and above them switches of 8 racks."""
    members: dict[str, list[Member]] = {}
    for index, node in enumerate(sorted(state.nodes.records)):
        rack = f"rack-{index // 16:03}"
        switch = members.setdefault(f"switch-{index // 128:03}", [])
        if rack not in members:
            switch.append(Member("HyperNode", MemberSelector(exact_match=ExactMatch(rack))))
        member = Member("Node", MemberSelector(exact_match=ExactMatch(node)))
        members.setdefault(rack, []).append(member)
    for name, found in members.items():
        spec = HyperNodeSpec(2 if name.startswith("switch") else 1, members=found)
        state.set_hyper_node(HyperNode(metadata=ObjectMeta(name=name), spec=spec))


def other_gangs_in_racks(state: ClusterState) -> None:
    """500 gangs of 20 equal pods, which may be in any rack."""
    racks(state)
    equal_gangs(state)


IN_ONE_RACK = NetworkTopology("hard", 1)


def gangs_in_racks(state: ClusterState) -> None:
    """500 gangs of 20 equal pods, each in one rack."""
    racks(state)
    equal_gangs(state)
    for gang in range(GANGS):
        group = state.jobs[f"{NAMESPACE}/gang-{gang}"].group
        assert group is not None
        spec = replace(group.spec, network_topology=IN_ONE_RACK)
        state.set_pod_group(replace(group, spec=spec))


def partitions_in_racks(state: ClusterState) -> None:
    """A gang of 100 partitions of 10 pods, each partition in one rack."""
    racks(state)
    add_gang(state, "gang-0", 1000)
    group = state.jobs[f"{NAMESPACE}/gang-0"].group
    assert group is not None
    policy = SubGroupPolicy(
        "worker",
        IN_ONE_RACK,
        sub_group_size=10,
        min_sub_groups=100,
        match_label_keys=[keys.PARTITION_ID],
    )
    state.set_pod_group(replace(group, spec=replace(group.spec, sub_group_policy=[policy])))
    for index in range(1000):
        made = equal_pod("gang-0", 0, index)
        labels = {keys.PARTITION_ID: str(index // 10)}
        state.set_pod(replace(made, metadata=replace(made.metadata, labels=labels)))


def elastic_in_racks(state: ClusterState) -> None:
    """A gang of 2,000 pods that can start with one of them, as near to each other as there is room."""
    racks(state)
    add_gang(state, "gang-0", 1)
    group = state.jobs[f"{NAMESPACE}/gang-0"].group
    assert group is not None
    spec = replace(group.spec, network_topology=NetworkTopology("soft"))
    state.set_pod_group(replace(group, spec=spec))
    for index in range(2000):
        state.set_pod(equal_pod("gang-0", 0, index))


def single_pods(state: ClusterState) -> None:
    """10,000 gangs of one pod."""
    gangs(state, GANGS * SIZE, 1, equal_pod)


def unequal_gangs(state: ClusterState) -> None:
    """500 gangs of 20 pods, each gang of another size."""
    gangs(state, GANGS, SIZE, lambda name, gang, index: pod(name, "worker", index, unequal(gang)))


def two_shapes(state: ClusterState) -> None:
    """500 gangs of 20 pods, of two sizes in turn."""
    gangs(state, GANGS, SIZE, lambda name, _, index: pod(name, "worker", index, "12"[index % 2]))


def host_ports(state: ClusterState) -> None:
    """500 gangs of 20 pods that want a port of their node, one of 20."""
    gangs(
        state,
        GANGS,
        SIZE,
        lambda name, gang, index: pod(name, "worker", index, "1", port=8000 + gang % PORTS),
    )


def waiting_class(state: ClusterState, name: str, provisioner: str) -> None:
    """A StorageClass whose claims wait for their first consumer."""
    meta = ObjectMeta(name=name)
    state.set_storage_class(StorageClass(meta, provisioner, "WaitForFirstConsumer"))


def claiming_pod(state: ClusterState, storage_class: str, name: str, index: int) -> Pod:
    """A pod with a claim of its own."""
    made = pod(name, "worker", index, "2")
    claim = f"{name}-{index}"
    state.set_claim(
        PersistentVolumeClaim(
            ObjectMeta(name=claim, namespace=NAMESPACE, uid=claim),
            PersistentVolumeClaimSpec(
                access_modes=["ReadWriteOnce"],
                storage_class_name=storage_class,
                resources=StorageRequests({"storage": "10Gi"}),
            ),
        )
    )
    volumes = [PodVolume("data", ClaimSource(claim))]
    return replace(made, spec=replace(made.spec, volumes=volumes))


def provisioned_claims(state: ClusterState) -> None:
    """500 gangs of 20 pods, each with a claim that a volume is made for; nodes attach 40 volumes at most."""
    waiting_class(state, "made", "disk.example.com")
    limit = CsiNodeSpec([CsiDriver("disk.example.com", DriverLimit(40))])
    for node in list(state.nodes.records):
        state.set_csi_node(CsiNode(ObjectMeta(name=node), limit))
    gangs(state, GANGS, SIZE, lambda name, _, index: claiming_pod(state, "made", name, index))


def local_claims(state: ClusterState) -> None:
    """500 gangs of 20 pods, each with a claim to a volume that one node reaches."""
    nodes = list(state.nodes.records)

    def near(number: int) -> VolumeNodeAffinity:
        here = NodeSelectorRequirement("kubernetes.io/hostname", "In", [nodes[number % len(nodes)]])
        return VolumeNodeAffinity(NodeSelector([NodeSelectorTerm([here])]))

    existing_volumes(state, "local", near)
    gangs(state, GANGS, SIZE, lambda name, _, index: claiming_pod(state, "local", name, index))


def shared_claims(state: ClusterState) -> None:
    """500 gangs of 20 pods, each with a claim to a volume that every node reaches."""
    existing_volumes(state, "shared", lambda _: None)
    gangs(state, GANGS, SIZE, lambda name, _, index: claiming_pod(state, "shared", name, index))


def existing_volumes(
    state: ClusterState, name: str, near: Callable[[int], VolumeNodeAffinity | None]
) -> None:
    """Twice as many volumes of a class as there will be claims, which wait for their first consumer."""
    waiting_class(state, name, "kubernetes.io/no-provisioner")
    for number in range(2 * GANGS * SIZE):
        state.set_volume(
            PersistentVolume(
                ObjectMeta(name=f"disk-{number}"),
                PersistentVolumeSpec(
                    capacity={"storage": "10Gi"},
                    access_modes=["ReadWriteOnce"],
                    storage_class_name=name,
                    node_affinity=near(number),
                ),
                PersistentVolumeStatus("Available"),
            )
        )


def many_queues(state: ClusterState) -> None:
    """1,000 gangs of 10 pods, in the lowest of 1,000 queues in a tree of depth 3."""
    gangs(state, GANGS * SIZE // 10, 10, equal_pod, queues=tree_of_queues(state))


def tree_of_queues(state: ClusterState) -> list[str]:
    """1,000 queues in a tree of depth 3; names of the lowest."""
    tops = [f"top-{number}" for number in range(10)]
    middles = [f"middle-{number}" for number in range(90)]
    leaves = [f"leaf-{number}" for number in range(QUEUES - len(tops) - len(middles))]
    for above, names in (((keys.ROOT_QUEUE,), tops), (tops, middles), (middles, leaves)):
        for number, name in enumerate(names):
            spec = QueueSpec(parent=above[number % len(above)])
            state.set_queue(Queue(metadata=ObjectMeta(name=name), spec=spec))
    return leaves


def elastic_in_tree(count: int, state: ClusterState) -> None:
    """A gang of three pods that needs one, in each of many queues, in a tree of depth 3 in which all queues deserve something."""
    leaves = []
    for top in range(10):
        _deserving(state, f"top-{top}", keys.ROOT_QUEUE, "400")
        for middle in range(10):
            _deserving(state, f"middle-{top}-{middle}", f"top-{top}", "40")
            for leaf in range(count // 100):
                name = f"leaf-{top}-{middle}-{leaf}"
                _deserving(state, name, f"middle-{top}-{middle}", "2")
                leaves.append(name)
    for gang, queue in enumerate(leaves):
        name = f"gang-{gang:05}"
        add_gang(state, name, 1, "Inqueue", queue=queue)
        for index in range(3):
            state.set_pod(pod(name, "worker", index, "100m"))


def _deserving(state: ClusterState, name: str, parent: str, cpu: str) -> None:
    spec = QueueSpec(parent=parent, deserved={"cpu": cpu})
    state.set_queue(Queue(metadata=ObjectMeta(name=name), spec=spec))


def unequal_pods(state: ClusterState) -> None:
    """500 gangs of 20 pods, each pod of another size."""

    def another(name: str, gang: int, index: int) -> Pod:
        number = gang * SIZE + index
        memory = f"{4096 + number // 100}Mi"
        return pod(name, "worker", index, f"{1500 + number % 100}m", memory=memory)

    gangs(state, GANGS, SIZE, another)


def topology_pod(name: str, _gang: int, index: int) -> Pod:
    """One pod in five is a parameter server."""
    role, cpu = ("ps", "1") if index % 5 == 0 else ("worker", "2")
    return pod(name, role, index, cpu)


def topology_gangs(state: ClusterState) -> None:
    """500 gangs of 4 parameter servers and 16 workers."""
    gangs(state, GANGS, SIZE, topology_pod, annotations=TOPOLOGY)


def topology_gang(state: ClusterState) -> None:
    """One gang of 1,000 parameter servers and 4,000 workers."""
    gangs(state, 1, 5000, topology_pod, annotations=TOPOLOGY)


def apart(state: ClusterState) -> None:
    """One gang of 800 pods that repel each other from their nodes."""
    gangs(state, 1, 800, equal_pod, annotations=APART)


def with_rules(pod: Pod, gang: str, **rules: Any) -> Pod:
    """The pod with rules about the pods of its gang."""
    labels = {"app": gang}
    spec = replace(pod.spec, **rules)
    return replace(pod, metadata=replace(pod.metadata, labels=labels), spec=spec)


def on_nodes_of_their_own(state: ClusterState) -> None:
    """500 gangs of 20 pods, of which no two of a gang may share a node."""

    def another(name: str, _gang: int, index: int) -> Pod:
        term = PodAffinityTerm(LabelSelector({"app": name}), topology_key=HOSTNAME)
        affinity = Affinity(pod_anti_affinity=PodAffinity([term]))
        return with_rules(pod(name, "worker", index, "2"), name, affinity=affinity)

    gangs(state, GANGS, SIZE, another)


def in_one_zone(state: ClusterState) -> None:
    """500 gangs of 20 pods, those of a gang in the same zone."""

    def another(name: str, _gang: int, index: int) -> Pod:
        term = PodAffinityTerm(LabelSelector({"app": name}), topology_key=ZONE)
        affinity = Affinity(pod_affinity=PodAffinity([term]))
        return with_rules(pod(name, "worker", index, "2"), name, affinity=affinity)

    gangs(state, GANGS, SIZE, another)


def over_zones(state: ClusterState) -> None:
    """500 gangs of 20 pods, those of a gang spread over three zones."""

    def another(name: str, _gang: int, index: int) -> Pod:
        rule = TopologySpreadConstraint(
            topology_key=ZONE,
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector({"app": name}),
        )
        plain = pod(name, "worker", index, "2")
        return with_rules(plain, name, topology_spread_constraints=[rule])

    gangs(state, GANGS, SIZE, another)


def own_terms(state: ClusterState) -> None:
    """One gang of 3,000 pods, each with a label and a preferred anti-affinity of its own, to all pods with another label."""

    def another(name: str, _gang: int, index: int) -> Pod:
        own = f"{name}-{index}"
        others = LabelSelectorRequirement(key="app", operator="NotIn", values=[own])
        selector = LabelSelector(match_expressions=[others])
        wish = WeightedPodAffinityTerm(5, PodAffinityTerm(selector, topology_key=HOSTNAME))
        apart = PodAffinity(preferred_during_scheduling_ignored_during_execution=[wish])
        plain = pod(name, "worker", index, "10m", memory="16Mi")
        return with_rules(plain, own, affinity=Affinity(pod_anti_affinity=apart))

    gangs(state, 1, 3000, another)


PLACING: tuple[tuple[str, Callable[[ClusterState], None]], ...] = (
    ("equal gangs", equal_gangs),
    ("single pods", single_pods),
    ("two shapes in turn", two_shapes),
    ("host ports", host_ports),
    ("claims that wait, provisioned", provisioned_claims),
    ("claims that wait, local volumes", local_claims),
    ("claims that wait, shared volumes", shared_claims),
    ("1,000 queues", many_queues),
    ("unequal gangs", unequal_gangs),
    ("unequal pods", unequal_pods),
    ("task topology", topology_gangs),
    ("task topology, one gang", topology_gang),
    ("apart from itself, one gang", apart),
    ("anti-affinity by node", on_nodes_of_their_own),
    ("affinity by zone", in_one_zone),
    ("spread over zones", over_zones),
    ("a term of its own for each pod", own_terms),
)
"""Work of the placing rows."""

NETWORK: tuple[tuple[str, Callable[[ClusterState], None], int], ...] = (
    ("gangs in racks", gangs_in_racks, 1000),
    ("gangs in racks", gangs_in_racks, 5000),
    ("100 partitions of 10 pods in racks", partitions_in_racks, 1000),
    ("an elastic gang of 2,000 pods in racks", elastic_in_racks, 1000),
    ("other gangs in racks", other_gangs_in_racks, 5000),
)
"""The same in a network of HyperNodes, with the number of nodes."""
