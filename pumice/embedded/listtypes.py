"""How lists and maps of the built-in kinds are merged.

CRDs define it in their schemas (`x-kubernetes-list-type`); for built-in kinds the tables below follow the Kubernetes
API reference ("patch strategy", "map: unique values on key ... will be kept during a merge"). Strategic merge patches
and server-side apply disagree on a few lists, hence two tables.
"""

from dataclasses import dataclass

__all__ = ["ATOMIC_MAPS", "ListType", "apply_list_type", "strategic_key"]


@dataclass(frozen=True, slots=True)
class ListType:
    """How a list is merged.

    Attributes:
        name: `atomic` (as a whole), `set` (by value) or `map` (by the keys).
        keys: What tells the items of a `map` apart.
    """

    name: str = "atomic"
    keys: tuple[str, ...] = ()


_SET = ListType("set")
_ATOMIC = ListType()

_STRATEGIC: dict[str, str] = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "finalizers": "",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podCIDRs": "",
    "podIPs": "ip",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
    "webhooks": "name",
}
_STRATEGIC_PORTS = {
    "containers": "containerPort",
    "initContainers": "containerPort",
    "spec": "port",
}

_APPLY = {field: ListType("map", (key,)) if key else _SET for field, key in _STRATEGIC.items()} | {
    "topologySpreadConstraints": ListType("map", ("topologyKey", "whenUnsatisfiable"))
}
_APPLY_PORTS = {
    "containers": ListType("map", ("containerPort", "protocol")),
    "initContainers": ListType("map", ("containerPort", "protocol")),
    "spec": ListType("map", ("port", "protocol")),
}

ATOMIC_MAPS = frozenset({"nodeSelector", "selector", "labelSelector", "matchLabels"})
"""Fields whose map server-side apply replaces as a whole."""


def strategic_key(parent: str, field: str) -> str | None:
    """Merge key of a list in a strategic merge patch.

    Args:
        parent: Nearest field above, lists skipped: `containers` for the ports of a container.
        field: The list.

    Returns:
        The key; empty for a list of texts that is merged by value; None for one that is replaced.
    """
    if field == "ports":
        return _STRATEGIC_PORTS.get(parent)
    return _STRATEGIC.get(field)


def apply_list_type(parent: str, field: str) -> ListType:
    """List type in server-side apply; arguments as for `strategic_key`."""
    if field == "ports":
        return _APPLY_PORTS.get(parent, _ATOMIC)
    return _APPLY.get(field, _ATOMIC)
