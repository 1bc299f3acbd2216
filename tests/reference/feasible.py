"""Pumice's own answers about a recorded cluster: the nodes that a pod may use and that have room for it."""

from typing import Any

import msgspec

from pumice.api.keys import DEFAULT_QUEUE
from pumice.api.nodes import Namespace, Node
from pumice.api.pods import Pod
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler import ClusterState, load_config
from pumice.scheduler.options import open_session
from pumice.scheduler.session.node_values import NOWHERE
from tests.reference.records import FAMILIES, Record, families, key_of
from tests.reference.volumes import STORAGE_CLASSES

Raw = dict[str, Any]

BUILT = frozenset(FAMILIES)
"""Families of rules that Pumice has; pods with rules of another family are left out."""

CONFIG = load_config("actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n")
NOW = 1_800_000_000.0


def feasible(record: Record) -> dict[str, list[str]]:
    """Names of nodes by pod, for the pods whose rules are all built."""
    state = ClusterState()
    for node in record["nodes"]:
        state.set_node(msgspec.convert(node, Node))
    for namespace in record["namespaces"]:
        state.set_namespace(msgspec.convert(namespace, Namespace))
    for storage_class in STORAGE_CLASSES:
        state.set_storage_class(msgspec.convert(storage_class, StorageClass))
    for csi_node in record["csi_nodes"]:
        state.set_csi_node(msgspec.convert(csi_node, CsiNode))
    for volume in record["volumes"]:
        state.set_volume(msgspec.convert(volume, PersistentVolume))
    for claim in record["claims"]:
        state.set_claim(msgspec.convert(claim, PersistentVolumeClaim))
    asked = [pod for pod in record["pods"] if families(record, pod) <= BUILT]
    for pod in [*record["running"], *asked]:
        state.set_pod(msgspec.convert(pod, Pod))
    state.settle(NOW)
    session = open_session(state, CONFIG, NOW)
    answers = {}
    for pod in asked:
        task = state.tasks[key_of(pod)]
        rows: list[int] = []
        if session.answers.why_impossible(task.shape) is None:
            ranking = session.ranking(task, DEFAULT_QUEUE)
            rows = [row for row in range(len(state.nodes)) if ranking.only(row) != NOWHERE]
        answers[task.key] = [state.nodes.names[row] for row in rows]
    session.close()
    return answers
