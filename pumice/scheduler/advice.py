"""Changes that would be enough for a waiting gang: each is made in a simulation, a cycle is run, and both are undone.

So each reported change has been simulated, with all other gangs unchanged; the number of cycles is limited. Pure: the same
objects give the same advice.

A gang before its queue has no pods yet. Then a change is enough if the gang may enter.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from pumice.api import keys
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup, PodGroupSpec
from pumice.api.quantities import format_milli, parse_milli
from pumice.api.queues import Queue
from pumice.scheduler import Reason
from pumice.scheduler.simulate import ClusterObjects, Simulation, Subject

_KINDS = 4
"""Kinds of nodes that are tried, the most frequent ones first."""
_QUEUES = 4
"""Other queues that are tried, in the order of their names."""
_HOSTNAME = "kubernetes.io/hostname"
_SCARCE = ("cpu", "memory")


class Advice(msgspec.Struct, frozen=True):
    """Result of a simulated cycle for one gang.

    Attributes:
        reason: Why it waits; None when it does not.
        fits: Whether that cycle places pods of it, or lets it into its queue.
        ahead: Gangs that wait before it in its queue.
        enough: Changes each of which would be enough, as a sentence and as data.
        enters: Whether it has no pods and waits before its queue.
    """

    reason: Reason | None
    fits: bool
    ahead: tuple[str, ...] = ()
    enough: tuple[tuple[str, dict[str, Any]], ...] = ()
    enters: bool = False


def advise(
    simulation: Simulation,
    objects: ClusterObjects,
    group: PodGroup,
    now: float,
    *,
    other_queues: bool = True,
) -> Advice:
    """Run a cycle and, if the gang waits, one with each change.

    Args:
        simulation: A simulation of the objects; it is left as it was, except that reasons of other gangs may be out of date.
        objects: The cluster.
        group: The gang, one of `objects`.
        now: The moment, UNIX seconds.
        other_queues: Whether the queues of `objects` are the cluster's, so that another one may be recommended.
    """
    enters = group.status.phase in ("", "Pending") and not _has_pods(objects, group)
    trial = _Trial(simulation, group.metadata.key, now, enters)
    with trial.tried() as fits:
        reason = simulation.pending.get(trial.gang)
        if fits or reason is None:
            return Advice(reason, fits, enters=enters)
        line = simulation.lines(now).get(group.spec.queue or keys.DEFAULT_QUEUE, [])
        ahead = tuple(line[: line.index(trial.gang)]) if trial.gang in line else ()
    enough = [
        (text, data)
        for text, data, old, new in _changes(objects, group, other_queues=other_queues)
        if trial.helps(old, new)
    ]
    smaller = _smaller(trial, group)
    if smaller is not None:
        enough.append(_told(group.spec, smaller.spec))
    return Advice(reason, fits, ahead, tuple(enough), enters)


class _Trial:
    """Cycles in which one gang is tried, on the cluster as it is or with a change."""

    def __init__(self, simulation: Simulation, gang: str, now: float, enters: bool) -> None:
        self.gang = gang
        self.enters = enters
        self._simulation = simulation
        self._now = now

    @contextmanager
    def tried(self) -> Iterator[bool]:
        """Run a cycle; whether it places or pipelines pods of the gang, or lets it into its queue. At the end all is undone."""
        simulation, gang = self._simulation, self.gang
        simulation.state.try_again([gang])
        try:
            result = simulation.cycle(self._now)
            placed = result.binds.keys() | result.pipelined.keys()
            if self.enters:
                yield simulation.pod_groups[gang].phase not in ("", "Pending")
            else:
                yield any(simulation.gang_of(pod) == gang for pod in placed)
        finally:
            simulation.undo()

    def helps(self, old: Subject | None, new: Subject) -> bool:
        """True if a change, which is undone, would be enough."""
        self._simulation.replace(old, new)
        try:
            with self.tried() as fits:
                return fits
        finally:
            self._simulation.replace(new, old)


def _has_pods(objects: ClusterObjects, group: PodGroup) -> bool:
    """Whether pods name a gang."""
    meta = group.metadata
    return any(
        pod.metadata.namespace == meta.namespace
        and meta.name
        in (
            pod.metadata.annotation(keys.GROUP_NAME),
            pod.metadata.annotation(keys.GROUP_NAME_VOLCANO),
        )
        for pod in objects.pods
    )


def _changes(
    objects: ClusterObjects, group: PodGroup, *, other_queues: bool
) -> Iterator[tuple[str, dict[str, Any], Subject | None, Subject]]:
    """Changes: as a sentence, as data, and an object before (None if it is created) and after it."""
    for node in _kinds(objects.nodes):
        name = node.metadata.name
        copy = _copy(node, {each.metadata.name for each in objects.nodes})
        has = _has(node)
        data = {"addNode": {"like": name, "allocatable": has}}
        listed = ", ".join(f"{amount} {resource}" for resource, amount in has.items())
        text = f"one more node like {name} ({listed})"
        yield text, data, None, copy
    if not other_queues:
        return
    own = group.spec.queue or keys.DEFAULT_QUEUE
    for queue in _leaves(objects.queues, own):
        name = queue.metadata.name
        moved = replace(group, spec=replace(group.spec, queue=name))
        yield f"queue {name} instead of {own}", {"queue": name}, group, moved


def _smaller(trial: _Trial, group: PodGroup) -> PodGroup | None:
    """The gang with the largest smaller minimum with which pods are placed, or it enters its queue; found by halving.

    What a smaller minimum asks for is known before there are pods only if all pods are of one task. Of a gang that requires
    sub-groups of one policy, fewer of them are required.
    """
    policies = group.spec.sub_group_policy or []
    required = [place for place, each in enumerate(policies) if (each.min_sub_groups or 0) > 0]
    if len(required) > 1 or group.spec.min_member < 1:
        return None
    if trial.enters and len(group.spec.min_task_member or ()) != 1:
        return None
    low, high = 0, group.spec.min_member
    if required:
        high = policies[required[0]].min_sub_groups or 0
    found: PodGroup | None = None
    while high - low > 1:
        middle = (low + high) // 2
        changed = _with_fewer(group, required[0], middle) if required else group
        minimum = changed.spec.min_member if required else middle
        asks = _part(group, minimum) if trial.enters else None
        changed = replace(
            changed, spec=replace(changed.spec, min_member=minimum, min_resources=asks)
        )
        if trial.helps(group, changed):
            low, found = middle, changed
        else:
            high = middle
    return found


def _with_fewer(group: PodGroup, place: int, required: int) -> PodGroup:
    """A gang that requires fewer sub-groups of one policy, and as many fewer pods."""
    policies = list(group.spec.sub_group_policy or ())
    policy = policies[place]
    fewer = (policy.min_sub_groups or 0) - required
    policies[place] = replace(policy, min_sub_groups=required)
    minimum = max(group.spec.min_member - fewer * (policy.sub_group_size or 1), 1)
    return replace(group, spec=replace(group.spec, min_member=minimum, sub_group_policy=policies))


def _told(before: PodGroupSpec, after: PodGroupSpec) -> tuple[str, dict[str, Any]]:
    """A smaller minimum as a sentence and as data."""
    text = f"minAvailable {after.min_member} instead of {before.min_member}"
    data: dict[str, Any] = {"minAvailable": after.min_member}
    for old, new in zip(before.sub_group_policy or (), after.sub_group_policy or (), strict=True):
        if old.min_sub_groups != new.min_sub_groups:
            text = f"{new.min_sub_groups} required sub-groups of {new.name} instead of {old.min_sub_groups} ({text})"
            data |= {"policy": new.name, "minSubGroups": new.min_sub_groups}
    return text, data


def _part(group: PodGroup, pods: int) -> dict[str, str | int]:
    """What some pods of a gang whose pods are alike ask for."""
    whole = group.spec.min_resources or {}
    return {
        name: format_milli(-(-parse_milli(amount) * pods // group.spec.min_member))
        for name, amount in whole.items()
    }


def _kinds(nodes: list[Node]) -> list[Node]:
    """One ready node of each kind of node, the first by name. The kinds are sorted by how many nodes they have, most first."""
    kinds: dict[str, list[Node]] = {}
    for node in sorted(nodes, key=lambda each: each.metadata.name):
        is_ready = all(
            each.status == "True" for each in node.status.conditions or () if each.type == "Ready"
        )
        if is_ready and not node.spec.unschedulable:
            labels = {k: v for k, v in (node.metadata.labels or {}).items() if k != _HOSTNAME}
            kind = repr((sorted(_has(node).items()), sorted(labels.items()), node.spec.taints))
            kinds.setdefault(kind, []).append(node)
    frequent = sorted(kinds.values(), key=lambda each: (-len(each), each[0].metadata.name))
    return [each[0] for each in frequent[:_KINDS]]


def _has(node: Node) -> dict[str, str]:
    """What a node has to give, CPU and memory first, without pod slots."""
    reported = node.status.allocatable or node.status.capacity or {}
    others = sorted(name for name in reported if name not in (*_SCARCE, "pods"))
    return {name: str(reported[name]) for name in (*_SCARCE, *others) if name in reported}


def _copy(node: Node, taken: set[str]) -> Node:
    """A node of the same kind under a name that is not taken."""
    name = f"{node.metadata.name}-copy"
    while name in taken:
        name += "-copy"
    labels = dict(node.metadata.labels or {})
    if _HOSTNAME in labels:
        labels[_HOSTNAME] = name
    return replace(node, metadata=replace(node.metadata, name=name, labels=labels))


def _leaves(queues: list[Queue], own: str) -> list[Queue]:
    """Open queues without queues below them, other than the gang's own."""
    above = {queue.spec.parent for queue in queues} | {own, keys.ROOT_QUEUE}
    found = [each for each in queues if each.is_open and each.metadata.name not in above]
    return sorted(found, key=lambda each: each.metadata.name)[:_QUEUES]
