"""Single events in a full cluster for which gangs wait."""

from collections.abc import Callable

import msgspec

from benchmarks.scheduling_clusters import NAMESPACE, SIZE, add_gang, equal, pod, unequal
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Node, NodeSpec, NodeStatus, Taint
from pumice.api.queues import Queue, QueueSpec
from pumice.scheduler import ClusterState

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
    """An empty node of 4 cpu is added; a gang of 20 needs more."""
    status = NodeStatus(allocatable={"cpu": "4", "memory": "128Gi", "pods": "110"})
    node = msgspec.structs.replace(heartbeat(state), metadata=new_name(run), status=status)
    state.set_node(node)


def node_of_others_comes(state: ClusterState, run: int) -> None:
    """An empty node is added, whose taint the waiting pods do not tolerate."""
    spec = NodeSpec(taints=[Taint(key="for", value="others", effect="NoSchedule")])
    state.set_node(msgspec.structs.replace(heartbeat(state), metadata=new_name(run), spec=spec))


def queue_changes(state: ClusterState, run: int) -> None:
    """A queue changes, which may affect any gang."""
    state.set_queue(Queue(metadata=ObjectMeta(name="default"), spec=QueueSpec(weight=run + 2)))


def new_name(run: int) -> ObjectMeta:
    """Metadata of a new node."""
    name = f"other-{run}"
    return ObjectMeta(name=name, labels={"kubernetes.io/hostname": name})


def heartbeat(state: ClusterState, row: int = 0) -> Node:
    """A node sends a heartbeat."""
    node = state.nodes.order[row].node
    assert node is not None
    return Node(metadata=node.metadata, spec=node.spec, status=node.status)


def without_nodes(state: ClusterState, name: str, size: int, cpu: str) -> None:
    """A gang for whose pods there is no room."""
    add_gang(state, name, size)
    for index in range(size):
        state.set_pod(pod(name, "worker", index, cpu))


def without_queue(state: ClusterState, name: str, size: int, cpu: str) -> None:
    """A gang that may not enter its queue, because it needs two thirds of the cluster; it has no pods yet."""
    needs = sum(each.node is not None for each in state.nodes.order) * 20_000 + int(
        cpu.removesuffix("m")
    )
    add_gang(state, name, size, "Pending", needs={"cpu": f"{needs}m"})


def without_share(state: ClusterState, name: str, size: int, cpu: str) -> None:
    """A gang that has entered a queue which has all that it may have."""
    if LIMITED not in state.queues:
        spec = QueueSpec(capability={"cpu": "1"})
        state.set_queue(Queue(metadata=ObjectMeta(name=LIMITED), spec=spec))
    add_gang(state, name, size, "Inqueue", queue=LIMITED)
    for index in range(size):
        state.set_pod(pod(name, "worker", index, cpu))


LIMITED = "limited"

Waits = Callable[[ClusterState, str, int, str], None]
"""Adds a gang that waits: its name, its size, the cpu of its pods."""

WAITING: tuple[tuple[str, int, Callable[[int], str], Happens, Waits], ...] = (
    ("pod ends", SIZE, equal, pod_ends, without_nodes),
    ("pod ends", 1, equal, pod_ends, without_nodes),
    ("pod ends", SIZE, unequal, pod_ends, without_nodes),
    ("pod ends", 1, unequal, pod_ends, without_nodes),
    ("pod ends, not in queue", SIZE, equal, pod_ends, without_queue),
    ("pod ends, not in queue", SIZE, unequal, pod_ends, without_queue),
    ("pod ends, full queue", SIZE, equal, pod_ends, without_share),
    ("pod ends, full queue", SIZE, unequal, pod_ends, without_share),
    ("node grows", SIZE, unequal, node_grows, without_nodes),
    ("node labelled", SIZE, unequal, node_is_labelled, without_nodes),
    ("node comes", SIZE, unequal, node_comes, without_nodes),
    ("node of others comes", 1, unequal, node_of_others_comes, without_nodes),
    ("queue changes", SIZE, unequal, queue_changes, without_nodes),
)
"""Rows of the table: event, size of the waiting gangs, cpu of their pods, function, why the gangs wait."""
