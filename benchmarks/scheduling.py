"""Decisions of the scheduler core per CPU second, and the price of a cycle in which nothing changed.

    python benchmarks/scheduling.py [--runs N] [--json FILE]

Placing: 10,000 pods (fewer where the row says so) on empty nodes, one cycle; with Pumice's default configuration and
with the one that Volcano compiles in. Idle: 5,000 nodes
that carry 50,000 running pods, after no event, after the heartbeat of a node, and after the end of a pod.
Preemption: full nodes and 50 more important gangs; 1,000 pods go for them, with priority and gang.
Waiting: full nodes for which 500 gangs wait, and one event that helps none of them, or a pod that ends; with what is
written because of it. The gangs are equal or each of another size. The first cycle after the event counts.
Ordering: what enqueue takes to let in 10,000 PodGroups of 1,000 queues, one of each queue in turn.
CPU time of the cycle (and of the event) alone; median and range over the runs. Python's garbage collector is as in the
component (`pumice/cli/lean.py`, `pumice/cluster/slices.py`): what was listed is frozen, and it looks at 10,000 new objects at a time.
Memory: see `benchmarks/scheduling_memory.py`.
"""

import argparse
import gc
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from benchmarks.report import MACHINE, write
from pumice.api import keys
from pumice.api.meta import LabelSelector, ObjectMeta
from pumice.api.nodes import Node, NodeSpec, NodeStatus, PriorityClass, Taint
from pumice.api.podgroups import PodGroup, PodGroupSpec, PodGroupStatus
from pumice.api.pods import (
    Affinity,
    ClaimSource,
    Container,
    ContainerPort,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PodVolume,
    ResourceRequirements,
    TopologySpreadConstraint,
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
from pumice.cli.lean import settled
from pumice.scheduler import ClusterState, Config, load_config, run_cycle
from pumice.scheduler.opening import Step
from pumice.scheduler.worker.settings import PACE

GANGS, SIZE = 500, 20
NAMESPACE = "bench"
VICTIMS = """
actions: enqueue, allocate, preempt
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack}]
"""
TOPOLOGY = {keys.TOPOLOGY_AFFINITY: "ps,worker", keys.TOPOLOGY_ANTI_AFFINITY: "ps"}
APART = {keys.TOPOLOGY_ANTI_AFFINITY: "worker"}
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PORTS = 20
QUEUES = 1000

VOLCANO = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
"""What Volcano uses when it is given no file."""


@dataclass
class Row:
    """One line of the table.

    Attributes:
        name: What was done.
        nodes: Nodes of the cluster.
        pods: Pods that were decided about, or that idle.
        milliseconds: CPU time of the cycle, median.
        low: Fastest run.
        high: Slowest run.
        writes: Writes that follow from the cycle, where that is measured; bindings are not counted.
        is_placing: Whether all the pods were placed in it.
    """

    name: str
    nodes: int
    pods: int
    milliseconds: float
    low: float
    high: float
    writes: int | None = None
    is_placing: bool = False

    @property
    def pods_per_second(self) -> float:
        """Pods per CPU second."""
        return self.pods / self.milliseconds * 1000


def cluster(nodes: int) -> ClusterState:
    """Empty nodes of 32 cpu and 128 GiB, in three zones."""
    state = ClusterState()
    status = NodeStatus(allocatable={"cpu": "32", "memory": "128Gi", "pods": "110"})
    for index in range(nodes):
        name = f"node-{index:05}"
        labels = {HOSTNAME: name, ZONE: f"zone-{index % 3}"}
        state.set_node(Node(metadata=ObjectMeta(name=name, labels=labels), status=status))
    return state


def pod(
    gang: str,
    role: str,
    index: int,
    cpu: str,
    node: str = "",
    *,
    memory: str = "4Gi",
    port: int = 0,
) -> Pod:
    """A pod of a gang; a running one when it has a node."""
    requests = ResourceRequirements(requests={"cpu": cpu, "memory": memory})
    ports = [ContainerPort(container_port=port, host_port=port)] if port else None
    return Pod(
        metadata=ObjectMeta(
            name=f"{gang}-{role}-{index}",
            namespace=NAMESPACE,
            annotations={keys.GROUP_NAME: gang, keys.TASK_SPEC: role},
        ),
        spec=PodSpec(
            scheduler_name=keys.DEFAULT_SCHEDULER,
            node_name=node,
            containers=[Container(name="main", resources=requests, ports=ports)],
        ),
        status=PodStatus(phase="Running" if node else "Pending"),
    )


def add_gang(
    state: ClusterState,
    name: str,
    size: int,
    phase: str = "",
    *,
    queue: str = "",
    priority: str = "",
    annotations: dict[str, str] | None = None,
) -> None:
    """A gang without its pods."""
    state.set_pod_group(
        PodGroup(
            metadata=ObjectMeta(name=name, namespace=NAMESPACE, annotations=annotations),
            spec=PodGroupSpec(min_member=size, queue=queue, priority_class_name=priority),
            status=PodGroupStatus(phase=phase),
        )
    )


Pods = Callable[[str, int, int], Pod]
"""A pod, from the name of its gang, the number of the gang and its number in the gang."""


def gangs(
    state: ClusterState,
    count: int,
    size: int,
    pods: Pods,
    *,
    queues: Sequence[str] = ("",),
    annotations: dict[str, str] | None = None,
) -> None:
    """Gangs with their pods, in the queues in turn."""
    for gang in range(count):
        name = f"gang-{gang}"
        add_gang(state, name, size, queue=queues[gang % len(queues)], annotations=annotations)
        for index in range(size):
            state.set_pod(pods(name, gang, index))


def equal_pod(name: str, _gang: int, index: int) -> Pod:
    """A pod like all others."""
    return pod(name, "worker", index, "2")


def equal_gangs(state: ClusterState) -> None:
    """500 gangs of 20 equal pods."""
    gangs(state, GANGS, SIZE, equal_pod)


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
    """One gang of 800 pods of which no two should share a node."""
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


def running(nodes: int, pods: int) -> ClusterState:
    """A cluster on which everything runs."""
    state = cluster(nodes)
    for gang in range(pods // SIZE):
        add_gang(state, f"gang-{gang}", SIZE, "Running")
        for index in range(SIZE):
            number = gang * SIZE + index
            state.set_pod(
                pod(f"gang-{gang}", "worker", index, "2", node=f"node-{number % nodes:05}")
            )
    return state


def measure_placing(
    name: str, nodes: int, build: Callable[[ClusterState], None], config: Config, runs: int
) -> Row:
    """One cycle that places everything."""
    times = []
    decided = waiting = 0
    for _ in range(runs):
        state = cluster(nodes)
        build(state)
        waiting = len(state.tasks)
        gc.collect()
        with settled():
            start = time.process_time()
            result = run_cycle(state, config, 0.0)
            times.append((time.process_time() - start) * 1000)
        decided = len(result.binds)
    middle = statistics.median(times)
    placed = decided == waiting
    return Row(name, nodes, decided, middle, min(times), max(times), is_placing=placed)


def measure_idle(nodes: int, pods: int, runs: int) -> list[Row]:
    """Cycles of a full cluster: after no event, after a heartbeat, and after one pod has ended."""
    config = load_config()
    state = running(nodes, pods)
    run_cycle(state, config, 0.0)
    run_cycle(state, config, 0.0)
    rows = []
    for name, event in (
        ("idle", lambda _: None),
        ("heartbeat", lambda _: state.set_node(heartbeat(state))),
        ("one pod ends", lambda run: state.remove_pod(NAMESPACE, f"gang-{run}-worker-0")),
    ):
        times = []
        gc.collect()
        with settled():
            for run in range(runs):
                start = time.process_time()
                event(run)
                run_cycle(state, config, 0.0)
                times.append((time.process_time() - start) * 1000)
        rows.append(Row(name, nodes, pods, statistics.median(times), min(times), max(times)))
    return rows


Happens = Callable[[ClusterState, int], None]


def pod_ends(state: ClusterState, run: int) -> None:
    """A pod leaves its node."""
    state.remove_pod(NAMESPACE, f"gang-{run}-worker-0")


def node_grows(state: ClusterState, run: int) -> None:
    """A full node reports 1 cpu more: too little for any pod that waits."""
    node = heartbeat(state, run)
    amounts = (node.status.allocatable or {}) | {"cpu": "33"}
    state.set_node(msgspec.structs.replace(node, status=NodeStatus(allocatable=amounts)))


def node_is_labelled(state: ClusterState, run: int) -> None:
    """A full node gets a label."""
    node = heartbeat(state, run)
    labels = (node.metadata.labels or {}) | {"run": str(run)}
    meta = msgspec.structs.replace(node.metadata, labels=labels)
    state.set_node(msgspec.structs.replace(node, metadata=meta))


def node_comes(state: ClusterState, run: int) -> None:
    """An empty node of 4 cpu comes; a gang of 20 needs more."""
    status = NodeStatus(allocatable={"cpu": "4", "memory": "128Gi", "pods": "110"})
    node = msgspec.structs.replace(heartbeat(state), metadata=new_name(run), status=status)
    state.set_node(node)


def node_of_others_comes(state: ClusterState, run: int) -> None:
    """An empty node comes that the pods which wait do not tolerate."""
    spec = NodeSpec(taints=[Taint(key="for", value="others", effect="NoSchedule")])
    state.set_node(msgspec.structs.replace(heartbeat(state), metadata=new_name(run), spec=spec))


def queue_changes(state: ClusterState, run: int) -> None:
    """A queue changes, which may concern any gang."""
    state.set_queue(Queue(metadata=ObjectMeta(name="default"), spec=QueueSpec(weight=run + 2)))


def new_name(run: int) -> ObjectMeta:
    """Metadata of a node that was not there."""
    name = f"other-{run}"
    return ObjectMeta(name=name, labels={"kubernetes.io/hostname": name})


def equal(_gang: int) -> str:
    """2 cpu for the pods of every gang."""
    return "2"


def unequal(gang: int) -> str:
    """1.5 to 2 cpu, other ones for the pods of every gang."""
    return f"{1500 + gang}m"


def measure_waiting(
    what: str, nodes: int, size: int, cpu: Callable[[int], str], happens: Happens, runs: int
) -> Row:
    """Full nodes, 500 gangs that wait, and one event."""
    config = load_config()
    state = running(nodes, nodes * 16)
    state.pace = PACE
    for gang in range(GANGS):
        add_gang(state, f"waiting-{gang}", size)
        for index in range(size):
            state.set_pod(pod(f"waiting-{gang}", "worker", index, cpu(gang)))
    now = 0.0
    for _ in range(5):  # whatever is to be said about them is said
        run_cycle(state, config, now)
        now += PACE.numbers
    times, writes = [], []
    gc.collect()
    with settled():
        for run in range(runs):
            start = time.process_time()
            happens(state, run)
            result = run_cycle(state, config, now)
            times.append((time.process_time() - start) * 1000)
            writes.append(len(result.pod_groups) + len(result.pods) + len(result.events))
            now += PACE.numbers
    kind = "equal" if cpu is equal else "unequal"
    name = f"{GANGS} {kind} gangs of {size}: {what}"
    middle = statistics.median(times)
    return Row(name, nodes, nodes * 16, middle, min(times), max(times), max(writes))


def measure_preempting(nodes: int, runs: int) -> Row:
    """Full nodes, and 50 more important gangs of 20 pods, for each of which a pod has to go."""
    config = load_config(VICTIMS)
    times = []
    evicted = 0
    for _ in range(runs):
        state = full_of_less_important(nodes)
        gc.collect()
        with settled():
            start = time.process_time()
            result = run_cycle(state, config, 0.0)
            times.append((time.process_time() - start) * 1000)
        evicted = len(result.evicted)
    return Row("preemption", nodes, evicted, statistics.median(times), min(times), max(times))


def measure_ordering(name: str, config: Config, runs: int) -> Row:
    """10,000 PodGroups in the queues in turn, which have no pods yet: what the action enqueue takes."""
    times: list[float] = []

    @contextmanager
    def measure(step: Step, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        if (step, name) == ("action", "enqueue"):
            times.append((time.process_time() - start) * 1000)

    for _ in range(runs):
        state = cluster(1000)
        leaves = tree_of_queues(state)
        for number in range(GANGS * SIZE):
            add_gang(state, f"gang-{number}", 1, queue=leaves[number % len(leaves)])
        gc.collect()
        with settled():
            result = run_cycle(state, config, 0.0, measure)
        assert len(result.pod_groups) == GANGS * SIZE
    return Row(name, 1000, 0, statistics.median(times), min(times), max(times))


def full_of_less_important(nodes: int) -> ClusterState:
    """10 pods of 3 cpu on every node, and 50 gangs of 20 such pods with a higher priority."""
    state = cluster(nodes)
    for name, value in (("low", 10), ("high", 1000)):
        state.set_priority_class(PriorityClass(metadata=ObjectMeta(name=name), value=value))
    for gang in range(nodes * 10 // SIZE):
        add_gang(state, f"low-{gang}", 1, "Running", priority="low")
        for index in range(SIZE):
            node = f"node-{(gang * SIZE + index) % nodes:05}"
            state.set_pod(pod(f"low-{gang}", "worker", index, "3", node=node))
    for gang in range(50):
        add_gang(state, f"high-{gang}", SIZE, "Inqueue", priority="high")
        for index in range(SIZE):
            state.set_pod(pod(f"high-{gang}", "worker", index, "3"))
    return state


def heartbeat(state: ClusterState, row: int = 0) -> Node:
    """A node that reports itself once more."""
    node = state.nodes.order[row].node
    assert node is not None
    return Node(metadata=node.metadata, spec=node.spec, status=node.status)


WAITING: tuple[tuple[str, int, Callable[[int], str], Happens], ...] = (
    ("pod ends", SIZE, equal, pod_ends),
    ("pod ends", 1, equal, pod_ends),
    ("pod ends", SIZE, unequal, pod_ends),
    ("pod ends", 1, unequal, pod_ends),
    ("node grows", SIZE, unequal, node_grows),
    ("node labelled", SIZE, unequal, node_is_labelled),
    ("node comes", SIZE, unequal, node_comes),
    ("node of others comes", 1, unequal, node_of_others_comes),
    ("queue changes", SIZE, unequal, queue_changes),
)
"""What is measured while gangs wait: event, size of the gangs, cpu of their pods, what happens."""


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
)
"""What is placed."""


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description="Benchmark the scheduler core.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="shapes of work with this in their name")
    options = parser.parse_args()
    rows = [
        measure_placing(f"{name}{whose}", nodes, build, load_config(text), options.runs)
        for whose, text in (("", None), (", Volcano's file", VOLCANO))
        for name, build in PLACING
        for nodes in (1000, 5000)
        if options.only in name
    ]
    if not options.only:
        rows += measure_others(options.runs)
    show(rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory {peak} MiB, {MACHINE}")
    figures = [asdict(row) | {"pods_per_second": row.pods_per_second} for row in rows]
    write(options.json, figures, peak_memory_mib=peak)


def measure_others(runs: int) -> list[Row]:
    """Cycles that place nothing, or next to nothing."""
    preempting = [measure_preempting(nodes, runs) for nodes in (1000, 5000)]
    ordering = [
        measure_ordering("ordering 10,000 PodGroups in 1,000 queues", load_config(), runs),
        measure_ordering("ordering, Volcano's file", load_config(VOLCANO), runs),
    ]
    return (
        preempting
        + ordering
        + measure_idle(5000, 50_000, runs)
        + [
            measure_waiting(what, nodes, size, cpu, happens, runs)
            for what, size, cpu, happens in WAITING
            for nodes in (1000, 5000)
        ]
    )


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    head = (
        f"{'what':<48} {'nodes':>6} {'pods':>6} {'ms CPU (range)':>24} {'pods/s':>12} {'writes':>6}"
    )
    print(head)
    for row in rows:
        spread = f"{row.milliseconds:.3f} ({row.low:.3f}-{row.high:.3f})"
        rate = f"{row.pods_per_second:,.0f}" if row.is_placing else ""
        writes = "" if row.writes is None else row.writes
        print(f"{row.name:<48} {row.nodes:>6} {row.pods:>6} {spread:>24} {rate:>12} {writes:>6}")


if __name__ == "__main__":
    main()
