"""Decisions of the scheduler core per CPU second, and the price of a cycle in which nothing changed.

    python benchmarks/scheduling.py [--runs N] [--json FILE]

Placing: 500 gangs of 20 equal pods on empty nodes with the default configuration, one cycle. Two harder
mixes are shown beside it: every gang of another shape, and gangs with task topology. Idle: 5,000 nodes
that carry 50,000 running pods, after no event, after the heartbeat of a node, and after the end of a pod.
Preemption: full nodes and 50 more important gangs; 1,000 pods go for them, with priority and gang.
Waiting: full nodes for which 500 gangs wait, and one pod ends; with what is written because of it.
CPU time of the cycle (and of the event) alone; median and range over the runs.
"""

import argparse
import gc
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import MACHINE, write
from pumice.api import keys
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Node, NodeStatus, PriorityClass
from pumice.api.podgroups import PodGroup, PodGroupSpec, PodGroupStatus
from pumice.api.pods import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from pumice.scheduler import ClusterState, load_config, run_cycle
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
    """

    name: str
    nodes: int
    pods: int
    milliseconds: float
    low: float
    high: float
    writes: int | None = None

    @property
    def is_placing(self) -> bool:
        """Whether all the pods were placed in it."""
        return self.pods == GANGS * SIZE

    @property
    def pods_per_second(self) -> float:
        """Pods per CPU second."""
        return self.pods / self.milliseconds * 1000


def cluster(nodes: int) -> ClusterState:
    """Empty nodes of 32 cpu and 128 GiB."""
    state = ClusterState()
    status = NodeStatus(allocatable={"cpu": "32", "memory": "128Gi", "pods": "110"})
    for index in range(nodes):
        name = f"node-{index:05}"
        labels = {"kubernetes.io/hostname": name}
        state.set_node(Node(metadata=ObjectMeta(name=name, labels=labels), status=status))
    return state


def pod(gang: str, role: str, index: int, cpu: str, node: str = "") -> Pod:
    """A pod of a gang; a running one when it has a node."""
    requests = ResourceRequirements(requests={"cpu": cpu, "memory": "4Gi"})
    return Pod(
        metadata=ObjectMeta(
            name=f"{gang}-{role}-{index}",
            namespace=NAMESPACE,
            annotations={keys.GROUP_NAME: gang, keys.TASK_SPEC: role},
        ),
        spec=PodSpec(
            scheduler_name=keys.DEFAULT_SCHEDULER,
            node_name=node,
            containers=[Container(name="main", resources=requests)],
        ),
        status=PodStatus(phase="Running" if node else "Pending"),
    )


def add_gang(
    state: ClusterState, name: str, size: int, phase: str = "", priority: str = ""
) -> None:
    """A gang without its pods."""
    annotations = TOPOLOGY if name.startswith("topology") else None
    state.set_pod_group(
        PodGroup(
            metadata=ObjectMeta(name=name, namespace=NAMESPACE, annotations=annotations),
            spec=PodGroupSpec(min_member=size, priority_class_name=priority),
            status=PodGroupStatus(phase=phase),
        )
    )


def gangs(nodes: int, cpu: Callable[[int], str]) -> ClusterState:
    """500 gangs of 20 pods with as much CPU as their gang has."""
    state = cluster(nodes)
    for gang in range(GANGS):
        add_gang(state, f"gang-{gang}", SIZE)
        for index in range(SIZE):
            state.set_pod(pod(f"gang-{gang}", "worker", index, cpu(gang)))
    return state


def equal_gangs(nodes: int) -> ClusterState:
    """500 gangs of 20 equal pods."""
    return gangs(nodes, lambda _: "2")


def unequal_gangs(nodes: int) -> ClusterState:
    """500 gangs of 20 pods, each gang of another size."""
    return gangs(nodes, lambda gang: f"{1500 + gang}m")


def topology_gangs(nodes: int) -> ClusterState:
    """500 gangs of 4 parameter servers and 16 workers."""
    state = cluster(nodes)
    for gang in range(GANGS):
        add_gang(state, f"topology-{gang}", SIZE)
        for index in range(SIZE):
            role, cpu = ("ps", "1") if index < SIZE // 5 else ("worker", "2")
            state.set_pod(pod(f"topology-{gang}", role, index, cpu))
    return state


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


def measure_placing(name: str, nodes: int, build: Callable[[int], ClusterState], runs: int) -> Row:
    """One cycle that places everything."""
    config = load_config()
    times = []
    decided = 0
    for _ in range(runs):
        state = build(nodes)
        start = time.process_time()
        result = run_cycle(state, config, 0.0)
        times.append((time.process_time() - start) * 1000)
        decided = len(result.binds)
    return Row(name, nodes, decided, statistics.median(times), min(times), max(times))


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
        for run in range(runs):
            start = time.process_time()
            event(run)
            run_cycle(state, config, 0.0)
            times.append((time.process_time() - start) * 1000)
        rows.append(Row(name, nodes, pods, statistics.median(times), min(times), max(times)))
    return rows


def measure_waiting(nodes: int, size: int, runs: int) -> Row:
    """Full nodes, 500 gangs that wait, and one pod that ends."""
    config = load_config()
    state = running(nodes, nodes * 16)
    state.pace = PACE
    for gang in range(GANGS):
        add_gang(state, f"waiting-{gang}", size)
        for index in range(size):
            state.set_pod(pod(f"waiting-{gang}", "worker", index, "2"))
    now = 0.0
    for _ in range(5):  # whatever is to be said about them is said
        run_cycle(state, config, now)
        now += PACE.numbers
    times, writes = [], []
    for run in range(runs):
        start = time.process_time()
        state.remove_pod(NAMESPACE, f"gang-{run}-worker-0")
        result = run_cycle(state, config, now)
        times.append((time.process_time() - start) * 1000)
        writes.append(len(result.pod_groups) + len(result.pods) + len(result.events))
        now += PACE.numbers
    name = f"{GANGS} gangs of {size} wait"
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
        gc.freeze()  # as the worker does with what it has listed (`cluster/slices.py`)
        start = time.process_time()
        result = run_cycle(state, config, 0.0)
        times.append((time.process_time() - start) * 1000)
        evicted = len(result.evicted)
        gc.unfreeze()
    return Row("preemption", nodes, evicted, statistics.median(times), min(times), max(times))


def full_of_less_important(nodes: int) -> ClusterState:
    """10 pods of 3 cpu on every node, and 50 gangs of 20 such pods with a higher priority."""
    state = cluster(nodes)
    for name, value in (("low", 10), ("high", 1000)):
        state.set_priority_class(PriorityClass(metadata=ObjectMeta(name=name), value=value))
    for gang in range(nodes * 10 // SIZE):
        add_gang(state, f"low-{gang}", 1, "Running", "low")
        for index in range(SIZE):
            node = f"node-{(gang * SIZE + index) % nodes:05}"
            state.set_pod(pod(f"low-{gang}", "worker", index, "3", node=node))
    for gang in range(50):
        add_gang(state, f"high-{gang}", SIZE, "Inqueue", "high")
        for index in range(SIZE):
            state.set_pod(pod(f"high-{gang}", "worker", index, "3"))
    return state


def heartbeat(state: ClusterState) -> Node:
    """A node that reports itself once more."""
    node = state.nodes.order[0].node
    assert node is not None
    return Node(metadata=node.metadata, spec=node.spec, status=node.status)


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description="Benchmark the scheduler core.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [
        measure_placing(name, nodes, build, options.runs)
        for name, build in (
            ("equal gangs", equal_gangs),
            ("unequal gangs", unequal_gangs),
            ("task topology", topology_gangs),
        )
        for nodes in (1000, 5000)
    ]
    rows += [measure_preempting(nodes, options.runs) for nodes in (1000, 5000)]
    rows += measure_idle(5000, 50_000, options.runs)
    rows += [
        measure_waiting(nodes, size, options.runs) for size in (SIZE, 1) for nodes in (1000, 5000)
    ]
    head = (
        f"{'what':<22} {'nodes':>6} {'pods':>6} {'ms CPU (range)':>24} {'pods/s':>12} {'writes':>6}"
    )
    print(head)
    for row in rows:
        spread = f"{row.milliseconds:.3f} ({row.low:.3f}-{row.high:.3f})"
        rate = f"{row.pods_per_second:,.0f}" if row.is_placing else ""
        writes = "" if row.writes is None else row.writes
        print(f"{row.name:<22} {row.nodes:>6} {row.pods:>6} {spread:>24} {rate:>12} {writes:>6}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory {peak} MiB, {MACHINE}")
    figures = [asdict(row) | {"pods_per_second": row.pods_per_second} for row in rows]
    write(options.json, figures, peak_memory_mib=peak)


if __name__ == "__main__":
    main()
