"""What a pod asks for, counted as Kubernetes counts it.

Two sums are needed: the *request* that a node must have room for, and the *quota usage* that a
PodGroup's `minResources` is made of.
"""

from collections.abc import Mapping

from pumice.api.pods import Container, PodSpec, ResourceRequirements
from pumice.api.quantities import MILLI, parse_milli

__all__ = ["Amounts", "add", "pod_requests", "quota_usage"]

Amounts = dict[str, int]
"""Resource name to milli-units."""


def add(total: Amounts, amounts: Mapping[str, int], times: int = 1) -> None:
    """Add amounts to a total, in place."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount * times


def pod_requests(spec: PodSpec) -> Amounts:
    """Milli-units that a node must have room for, and one pod.

    The larger of the sum over containers with restartable init containers, and the largest step of
    the ordinary init containers; plus overhead; a request of the pod as a whole overrides the sum.

    Raises:
        QuantityError: A quantity cannot be read.

    Source: Kubernetes documentation, "Init Containers" and "Sidecar Containers", resource sharing within containers.
    """
    total = _effective(spec, "requests")
    if spec.resources is not None:
        total.update(_parse(spec.resources.requests))
    add(total, _parse(spec.overhead))
    total["pods"] = MILLI
    return total


def quota_usage(spec: PodSpec) -> Amounts:
    """Milli-units that a pod counts in a quota: plain names, `requests.*`, `limits.*`, `pods`.

    Limits without requests count as requests, as the API server defaults them on pods.

    Raises:
        QuantityError: A quantity cannot be read.
    """
    requests = _effective(spec, "requests")
    limits = _effective(spec, "limits")
    add(requests, _parse(spec.overhead))
    usage: Amounts = {"pods": MILLI, "count/pods": MILLI}
    for name, amount in requests.items():
        usage[name] = amount
        usage[f"requests.{name}"] = amount
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    return usage


def _effective(spec: PodSpec, which: str) -> Amounts:
    running: Amounts = {}
    largest: Amounts = {}
    for container in spec.init_containers or ():
        amounts = _container(container, which)
        if container.restart_policy == "Always":
            add(running, amounts)
            _raise_to(largest, running)
        else:
            step = dict(running)
            add(step, amounts)
            _raise_to(largest, step)
    for container in spec.containers or ():
        add(running, _container(container, which))
    _raise_to(running, largest)
    return running


def _container(container: Container, which: str) -> Amounts:
    resources = container.resources or _NOTHING
    if which == "limits":
        return _parse(resources.limits)
    return _parse(resources.limits) | _parse(resources.requests)


_NOTHING = ResourceRequirements()


def _parse(quantities: Mapping[str, str | int | float] | None) -> Amounts:
    return {name: parse_milli(value) for name, value in (quantities or {}).items()}


def _raise_to(total: Amounts, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if amount > total.get(name, 0):
            total[name] = amount
