"""What Kubernetes' admission writes into a new pod that names a RuntimeClass.

A real API server does this itself. The embedded API server and simulations call `admit`.

Source: https://kubernetes.io/docs/concepts/containers/runtime-class/#scheduling and
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/.
"""

from typing import Any

from pumice.api.meta import ApiStruct, ObjectMeta, Raw
from pumice.api.quantities import QuantityError, parse_milli


class PodOverhead(ApiStruct, frozen=True):
    """Resources that the runtime needs for each pod."""

    pod_fixed: dict[str, str | int | float] | None = None


class RuntimeClassScheduling(ApiStruct, frozen=True):
    """Which nodes have the runtime; tolerations as they stand in manifests."""

    node_selector: dict[str, str] | None = None
    tolerations: list[dict[str, str | int | None]] | None = None


class RuntimeClass(ApiStruct, frozen=True):
    """A RuntimeClass: a container runtime that pods refer to by name."""

    metadata: ObjectMeta = ObjectMeta()
    overhead: PodOverhead | None = None
    scheduling: RuntimeClassScheduling | None = None


def admit(spec: Raw, runtime_class: RuntimeClass | None) -> str | None:
    """Write overhead, node selector and tolerations of a RuntimeClass into the spec of a pod.

    Args:
        spec: The spec of the pod, changed in place.
        runtime_class: The RuntimeClass that it names; None if it names none.

    Returns:
        Why the pod is refused, in Kubernetes' words; None if it is not.
    """
    overhead = runtime_class.overhead if runtime_class is not None else None
    scheduling = runtime_class.scheduling if runtime_class is not None else None
    given = spec.get("overhead")
    if overhead is not None:
        fixed = overhead.pod_fixed or {}
        if given and not _are_equal(given, fixed):
            return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        spec["overhead"] = dict(fixed)
        if not fixed:
            del spec["overhead"]
    if scheduling is not None:
        chosen: dict[str, str] = dict(spec.get("nodeSelector") or {})
        for key, value in (scheduling.node_selector or {}).items():
            if chosen.setdefault(key, value) != value:
                return (
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {chosen[key]}"
                )
        own, more = spec.get("tolerations") or [], scheduling.tolerations or []
        if chosen:
            spec["nodeSelector"] = chosen
        if own or more:
            spec["tolerations"] = _merged([*own, *more])
    if overhead is None and given is not None:
        return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    return None


def _are_equal(one: Raw, other: Raw) -> bool:
    """True if two lists of amounts are equal in value; spelling does not matter."""
    try:
        return {name: parse_milli(amount) for name, amount in one.items()} == {
            name: parse_milli(amount) for name, amount in other.items()
        }
    except QuantityError:
        return one == other


_Toleration = tuple[str, str, str, str, int | None]
"""Key, operator, value, effect, seconds."""


def _read(toleration: Raw) -> _Toleration:
    key, operator, value, effect = (
        str(toleration.get(name) or "") for name in ("key", "operator", "value", "effect")
    )
    return key, operator, value, effect, toleration.get("tolerationSeconds")


def _merged(tolerations: list[Any]) -> list[Any]:
    """The tolerations without those that another one covers; of equal ones the first is kept."""
    kept: list[Raw] = []
    for place, each in enumerate(tolerations):
        one = _read(each)
        later = [_read(other) for other in tolerations[place + 1 :]]
        if any(_covers(_read(other), one) for other in kept):
            continue
        if any(other != one and _covers(other, one) for other in later):
            continue
        kept.append(each)
    return kept


def _covers(wide: _Toleration, narrow: _Toleration) -> bool:
    """True if one toleration tolerates everything that the other tolerates, as far as Kubernetes can tell."""
    if wide == narrow:
        return True
    key, operator, value, effect, seconds = wide
    if narrow[0] != key and (key or operator != "Exists"):
        return False
    if effect not in ("", narrow[3]):
        return False
    if effect == "NoExecute" and seconds is not None and (narrow[4] is None or narrow[4] > seconds):
        return False
    if operator in ("", "Equal"):
        return narrow[1] == "Equal" and narrow[2] == value
    return operator == "Exists"
