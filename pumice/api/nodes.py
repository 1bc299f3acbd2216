"""The parts of a Node and of the small cluster objects that the scheduler reads; and what PriorityClasses write into new pods.

A real API server writes priority and preemption policy itself. The embedded API server and simulations use the functions here.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from pumice.api.meta import ApiStruct, ObjectMeta
from pumice.api.pods import Pod, PodSpec


class Taint(ApiStruct, frozen=True):
    """A taint: pods that do not tolerate it are kept away from the node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(ApiStruct, frozen=True):
    """Taints of a node, and whether it takes pods."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeCondition(ApiStruct, frozen=True):
    """A condition of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(ApiStruct, frozen=True):
    """Resources of a node, as quantities in the spelling of the API server."""

    allocatable: dict[str, str | int] | None = None
    capacity: dict[str, str | int] | None = None
    conditions: list[NodeCondition] | None = None


class Node(ApiStruct, frozen=True):
    """A node as Pumice reads it."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether the node takes pods; one that reports no Ready condition counts as ready."""
        for condition in self.status.conditions or ():
            if condition.type == "Ready":
                return condition.status == "True"
        return True


class PriorityClass(ApiStruct, frozen=True):
    """A named priority; the one with `global_default` applies to pods that name none."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class Namespace(ApiStruct, frozen=True):
    """A namespace; its annotation may name the default queue of its PodGroups."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


NEVER = "Never"
"""The preemption policy of pods for which no other pods are evicted."""

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Values of the classes that every API server has."""


def with_system_classes(classes: Iterable[PriorityClass]) -> list[PriorityClass]:
    """The classes, with those of the system that are not among them."""
    known = {
        name: PriorityClass(metadata=ObjectMeta(name=name), value=value)
        for name, value in SYSTEM_CLASSES.items()
    }
    return [*(known | {each.metadata.name: each for each in classes}).values()]


def values_of(classes: Iterable[PriorityClass]) -> dict[str, int]:
    """Values of the classes and of those of the system, by name."""
    return {each.metadata.name: each.value for each in with_system_classes(classes)}


def default_class(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """The class of pods that name none: of several global defaults the one with the lowest value, as in Kubernetes."""
    found = [each for each in classes if each.global_default]
    return min(found, key=lambda each: (each.value, each.metadata.name), default=None)


class PodPriorities:
    """What PriorityClasses give to pods."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        """Take in the classes; those of the system need not be among them."""
        self._known = {each.metadata.name: each for each in with_system_classes(classes)}
        self._default = default_class(self._known.values())

    def prioritized(self, spec: PodSpec) -> PodSpec:
        """The spec of a pod with `priority` and `preemptionPolicy` of its class; values that it has are kept.

        A pod that names no class gets those of the global default.
        """
        name = spec.priority_class_name
        found = self._known.get(name) if name else self._default
        if found is None or (spec.priority is not None and spec.preemption_policy):
            return spec
        priority = found.value if spec.priority is None else spec.priority
        policy = spec.preemption_policy or found.preemption_policy
        return replace(spec, priority=priority, preemption_policy=policy)


def with_priorities(pods: Iterable[Pod], classes: Iterable[PriorityClass]) -> Iterator[Pod]:
    """Pods with `spec.priority` and `spec.preemptionPolicy` of their PriorityClass; see `PodPriorities`."""
    priorities = PodPriorities(classes)
    for pod in pods:
        spec = priorities.prioritized(pod.spec)
        yield pod if spec is pod.spec else replace(pod, spec=spec)
