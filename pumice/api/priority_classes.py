"""What Kubernetes' admission writes into new pods by their PriorityClass: priority and preemption policy.

A real API server does this itself. The embedded API server and simulations use this module.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from pumice.api.meta import ObjectMeta
from pumice.api.nodes import PriorityClass
from pumice.api.pods import Pod

__all__ = ["NEVER", "SYSTEM_CLASSES", "values_of", "with_priorities", "with_system_classes"]

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


def with_priorities(pods: Iterable[Pod], classes: Iterable[PriorityClass]) -> Iterator[Pod]:
    """Pods with `spec.priority` and `spec.preemptionPolicy` of their PriorityClass; values that pods have are kept.

    A pod that names no class gets those of the global default; of several defaults that with the lowest value counts.

    Args:
        pods: The pods.
        classes: The classes; those of the system need not be among them.
    """
    known = {each.metadata.name: each for each in with_system_classes(classes)}
    defaults = [each for each in known.values() if each.global_default]
    default = min(defaults, key=lambda each: each.value, default=None)
    for pod in pods:
        spec = pod.spec
        name = spec.priority_class_name
        found = known.get(name) if name else default
        if found is None or (spec.priority is not None and spec.preemption_policy):
            yield pod
            continue
        priority = found.value if spec.priority is None else spec.priority
        policy = spec.preemption_policy or found.preemption_policy
        yield replace(pod, spec=replace(spec, priority=priority, preemption_policy=policy))
