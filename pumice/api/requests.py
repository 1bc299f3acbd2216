"""Resource requests of a pod, summed as Kubernetes sums them.

Two sums are needed: the *request* that a node must have room for, and the *quota usage* that a
PodGroup's `minResources` is made of.
"""

from collections.abc import Mapping

from pumice.api.pods import Container, PodSpec, PodStatus, ResourceRequirements
from pumice.api.quantities import MILLI, parse_milli

Amounts = dict[str, int]
"""Resource name to milli-units."""

Quantities = Mapping[str, str | int | float]
"""Resource name to a quantity as manifests spell it."""


def add(total: Amounts, amounts: Mapping[str, int], times: int = 1) -> None:
    """Add amounts to a total, in place."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount * times


def pod_requests(spec: PodSpec, status: PodStatus | None = None) -> Amounts:
    """Milli-units that a node must have room for, and one pod.

    The larger of the sum over containers with restartable init containers, and the largest step of
    the ordinary init containers; plus overhead; a request of the pod as a whole overrides the sum.

    While a pod is resized in place, the largest of what it asks for, what its node has allocated and what it runs with counts;
    once the node has found the resize infeasible, what is asked for does not count.

    Args:
        spec: What the pod asks for.
        status: What its node reports about it; None for a pod that is on no node.

    Raises:
        QuantityError: A quantity cannot be parsed.

    Source: Kubernetes documentation, "Init Containers" and "Sidecar Containers", resource sharing within containers; "Resize CPU
    and Memory Resources assigned to Containers"; `PodRequests` of k8s.io/component-helpers/resource.
    """
    total = _effective(spec, "requests", status)
    if spec.resources is not None:
        whole = _parse(spec.resources.requests)
        if status is not None and status.resources is not None:
            given = _in_effect(
                whole,
                status.resources,
                status.allocated_resources,
                is_infeasible=_is_resize_infeasible(status),
            )
            whole = {name: given.get(name, 0) for name in whole}
        total.update(whole)
    add(total, _parse(spec.overhead))
    total["pods"] = MILLI
    return total


def quota_usage(spec: PodSpec) -> Amounts:
    """Usage of a pod in a ResourceQuota, in milli-units by name: plain names, `requests.*`, `limits.*` and `pods`.

    Limits without requests count as requests, as the API server defaults them on pods.

    Raises:
        QuantityError: A quantity cannot be parsed.
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


def _effective(spec: PodSpec, which: str, status: PodStatus | None = None) -> Amounts:
    running: Amounts = {}
    largest: Amounts = {}
    reported = _reported(status) if status is not None else {}
    for container in spec.init_containers or ():
        amounts = _container(container, which)
        if container.restart_policy == "Always":
            if reported:
                amounts = _given(container, amounts, reported)
            add(running, amounts)
            step = {name: running[name] for name in amounts}
        else:
            step = {name: running.get(name, 0) + amount for name, amount in amounts.items()}
        _raise_to(largest, step)  # what is in no step of before is that of an earlier one
    for container in spec.containers or ():
        amounts = _container(container, which)
        add(running, _given(container, amounts, reported) if reported else amounts)
    _raise_to(running, largest)
    return running


_Reported = Mapping[str, tuple[bool, ResourceRequirements, Quantities | None]]
"""By a container's name, whether its pod cannot be resized as asked, and what its node says that it runs with and is allocated."""


def _reported(status: PodStatus) -> _Reported:
    is_infeasible = _is_resize_infeasible(status)
    return {
        each.name: (is_infeasible, each.resources, each.allocated_resources)
        for statuses in (status.init_container_statuses, status.container_statuses)
        for each in statuses or ()
        if each.resources is not None
    }


def _given(container: Container, amounts: Amounts, reported: _Reported) -> Amounts:
    """Amounts that count for a container, from its requests and from what its node may report."""
    if container.name not in reported:
        return amounts
    is_infeasible, runs, allocated = reported[container.name]
    if runs.requests == (container.resources or _NOTHING).requests == allocated:
        return amounts  # as for almost all pods
    return _in_effect(amounts, runs, allocated, is_infeasible=is_infeasible)


def _container(container: Container, which: str) -> Amounts:
    resources = container.resources or _NOTHING
    if which == "limits":
        return _parse(resources.limits)
    return _parse(resources.limits) | _parse(resources.requests)


def _in_effect(
    asked: Amounts,
    runs: ResourceRequirements,
    allocated: Quantities | None,
    *,
    is_infeasible: bool,
) -> Amounts:
    """Amounts that count for a container, or for a pod as a whole, if its node reports what it runs with."""
    found: Amounts = {} if is_infeasible else dict(asked)
    _raise_to(found, _parse(runs.requests))
    _raise_to(found, _parse(allocated))
    return found


def _is_resize_infeasible(status: PodStatus) -> bool:
    pending = (each for each in status.conditions or () if each.type == "PodResizePending")
    return any(each.reason == "Infeasible" for each in pending)


_NOTHING = ResourceRequirements()


def _parse(quantities: Quantities | None) -> Amounts:
    return {name: parse_milli(value) for name, value in (quantities or {}).items()}


def _raise_to(total: Amounts, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if amount > total.get(name, 0):
            total[name] = amount
