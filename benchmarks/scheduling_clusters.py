"""Clusters, full and empty, and gangs for the benchmarks of the scheduler core."""

from collections.abc import Callable, Sequence

from pumice.api import keys
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Node, NodeStatus, PriorityClass
from pumice.api.podgroups import PodGroup, PodGroupSpec, PodGroupStatus
from pumice.api.pods import (
    Container,
    ContainerPort,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from pumice.scheduler import ClusterState

GANGS, SIZE = 500, 20
NAMESPACE = "bench"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
Pods = Callable[[str, int, int], Pod]
"""Makes a pod by the name of its gang, and the numbers of the gang and of the pod."""


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
    needs: dict[str, str | int] | None = None,
) -> None:
    """A gang without its pods."""
    state.set_pod_group(
        PodGroup(
            metadata=ObjectMeta(name=name, namespace=NAMESPACE, annotations=annotations),
            spec=PodGroupSpec(
                min_member=size, queue=queue, priority_class_name=priority, min_resources=needs
            ),
            status=PodGroupStatus(phase=phase),
        )
    )


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


def running(nodes: int, pods: int) -> ClusterState:
    """A cluster whose pods all run."""
    state = cluster(nodes)
    for gang in range(pods // SIZE):
        add_gang(state, f"gang-{gang}", SIZE, "Running")
        for index in range(SIZE):
            number = gang * SIZE + index
            state.set_pod(
                pod(f"gang-{gang}", "worker", index, "2", node=f"node-{number % nodes:05}")
            )
    return state


def equal(_gang: int) -> str:
    """2 cpu for the pods of every gang."""
    return "2"


def unequal(gang: int) -> str:
    """1.5 to 2 cpu, other ones for the pods of every gang."""
    return f"{1500 + gang}m"


def full_of_gangs(nodes: int) -> ClusterState:
    """500 gangs that need all their pods of 3 cpu, 10 on each node; and one of 10 such pods with a higher priority."""
    state = cluster(nodes)
    for name, value in (("low", 10), ("high", 1000)):
        state.set_priority_class(PriorityClass(metadata=ObjectMeta(name=name), value=value))
    size = nodes * 10 // GANGS
    for gang in range(GANGS):
        add_gang(state, f"low-{gang}", size, "Running", priority="low")
        for index in range(size):
            node = f"node-{(gang * size + index) % nodes:05}"
            state.set_pod(pod(f"low-{gang}", "worker", index, "3", node=node))
    add_gang(state, "high", 10, "Inqueue", priority="high")
    for index in range(10):
        state.set_pod(pod("high", "worker", index, "3"))
    return state


def full_of_less_important(nodes: int) -> ClusterState:
    """10 pods of 3 cpu on each node, and 50 gangs of 20 such pods with a higher priority."""
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
