"""Nodes and PodGroups as the views of `pumice web` show them. Nodes are kept while what they follow from stays as it is: few change at once."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from pumice.api.meta import ObjectMeta, controller_of
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.quantities import format_milli
from pumice.api.requests import Amounts
from pumice.cli.live.explanation_text import current_condition
from pumice.cli.live.simulated import Change
from pumice.scheduler import ClusterState
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.nodes import NodeRecord

Data = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"
_USER = ("user", "owner")
"""Labels or annotations of a Job that name its user, as clusters have it; the first one counts."""

_OF_GANGS = ("queue", "position", "gangsWaiting", "summary", "message", "numbers", "phase")
_OF_QUOTAS = ("requests.", "limits.", "count/", "pods")


class NodeRows:
    """Nodes of the view of nodes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bool | None, list[str], Data]] = {}
        self._amounts: tuple[Ints, Ints] | None = None
        self._touched: set[str] | None = None
        """Nodes that have changed, or pods on them; None for any."""

    def note(self, changes: Sequence[Change] | None) -> None:
        """Note what has changed; None if it may be anything."""
        if changes is None or self._touched is None:
            self._touched = None
            return
        for each in chain.from_iterable(changes):
            if isinstance(each, Pod):
                self._touched.add(each.spec.node_name)
            elif isinstance(each, Node):
                self._touched.add(each.metadata.name)

    def of(self, state: ClusterState, usable: Mapping[str, bool]) -> tuple[list[str], list[Data]]:
        """The gangs that have pods on nodes, and the nodes."""
        names, rows = list(state.nodes.names), state.nodes.rows()
        has, free = rows.allocatable.copy(), rows.allocatable - rows.used
        known, touched, before = self._known, self._touched, self._amounts
        if touched is None or before is None or before[0].shape != has.shape:
            same = [False] * len(names)
        else:
            same = ((before[0] == has) & (before[1] == free)).all(axis=1).tolist()
        if list(known) != names or touched is None:
            known, touched = {}, set()
        found: dict[str, tuple[bool | None, list[str], Data]] = {}
        gangs: set[str] = set()
        for row, name in enumerate(names):
            entry, fits = known.get(name), usable.get(name)
            if entry is None or not same[row] or entry[0] is not fits or name in touched:
                record, amounts = state.nodes.records[name], state.axis.amounts
                group = _group_of(state, row, record)
                shown = _node(record, group, fits, amounts(has[row]), amounts(free[row]))
                entry = fits, [each.job for each in record.tasks.values()], shown
            found[name] = entry
            gangs.update(entry[1])
        self._known, self._amounts, self._touched = found, (has, free), set()
        return sorted(gangs), [data for _, _, data in found.values()]


def _group_of(state: ClusterState, row: int, record: NodeRecord) -> str:
    """The HyperNode of a node, or its zone in a cluster without HyperNodes."""
    if state.network.has_hyper_nodes:
        return state.network.narrowest([row]).name
    return record.node.metadata.label(_ZONE) if record.node is not None else ""


def _node(record: NodeRecord, group: str, usable: bool | None, has: Amounts, left: Amounts) -> Data:
    """A node of the view of nodes."""
    node = record.node
    pods = [
        {"pod": each.key, "gang": None if each.job.endswith("/") else each.job or None}
        for each in record.tasks.values()
    ]
    return {
        "name": record.name,
        "group": group,
        "ready": record.is_ready,
        "schedulable": node is not None and not node.spec.unschedulable,
        "allocatable": {key: format_milli(value) for key, value in has.items()},
        "free": {key: format_milli(left.get(key, 0)) for key in has},
        "usable": usable,
        "pods": sorted(pods, key=lambda each: str(each["pod"])),
    }


def group_row(group: PodGroup) -> Data:
    """What the view of what waits says of a PodGroup, whatever a cycle decides."""
    owner, condition = controller_of(group.metadata), current_condition(group)
    asked = group.spec.min_resources or {}
    resources = {key: str(value) for key, value in asked.items() if not key.startswith(_OF_QUOTAS)}
    since = group.metadata.creation_timestamp
    if group.status.phase == "Running" and condition is not None:
        since = condition.last_transition_time or since
    return {
        "namespace": group.metadata.namespace,
        "name": owner.name if owner else group.metadata.name,
        "kind": owner.kind if owner else "PodGroup",
        "podGroup": group.metadata.key,
        "user": user_of(group.metadata),
        "needs": {"pods": group.spec.min_member, "resources": resources},
        "since": since,
    }


def gang_row(gang: Data, group: Data, ahead: Sequence[Data]) -> Data:
    """A gang of the view of what waits."""
    return {
        **group,
        **{key: gang[key] for key in _OF_GANGS},
        "ahead": [{"podGroup": each["podGroup"], "needs": each["needs"]} for each in ahead],
    }


def user_of(meta: ObjectMeta) -> str | None:
    """The user of a Job or a PodGroup; None if nothing names one."""
    for key in _USER:
        if found := meta.label(key) or meta.annotation(key):
            return found
    return None
