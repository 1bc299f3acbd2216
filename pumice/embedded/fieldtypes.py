"""Field types: keyed lists and atomic maps, for server-side apply and strategic merge patches.

CRDs define them in their schemas (`x-kubernetes-list-type`); for built-in kinds the tables below follow the Kubernetes
API reference ("patch strategy", "map: unique values on key ... will be kept during a merge"). Strategic merge patches
and server-side apply disagree on a few lists, hence two tables.
"""

import json
from dataclasses import dataclass
from typing import Any

from pumice.api.structural import Structural
from pumice.embedded.resources import Resource
from pumice.embedded.storage import Obj


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


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of one field, found by walking down from the object.

    Attributes:
        node: Schema of the field, where a CRD gives one.
        builtin: Whether the tables of the built-in kinds apply. Where neither does, the type is
            deduced from the value: maps are merged, lists are replaced.
        name: The field.
        parent: The field above, lists skipped.
    """

    node: Structural | None = None
    builtin: bool = False
    name: str = ""
    parent: str = ""

    def child(self, name: str) -> "FieldType":
        """Type of a field of this map."""
        if not self.name and name == "metadata":
            return FieldType(builtin=True, name=name)
        node = None
        if self.node is not None:
            node = self.node.properties.get(name, self.node.additional)
        return FieldType(node, self.builtin, name, self.name)

    def item(self) -> "FieldType":
        """Type of the items of this list."""
        node = self.node.items if self.node is not None else None
        return FieldType(node, self.builtin, self.name, self.parent)

    def list_type(self) -> ListType:
        """The list type of the field: atomic, set or map."""
        if self.builtin:
            return apply_list_type(self.parent, self.name)
        if self.node is None:
            return ListType()
        return ListType(self.node.list_type or "atomic", self.node.list_map_keys)

    def atomic_map(self) -> bool:
        """Whether this map is replaced as a whole."""
        if self.node is not None:
            return self.node.map_type == "atomic"
        return self.builtin and self.name in ATOMIC_MAPS

    def key_default(self, key: str) -> Any:
        """Value of a key that an item of this keyed list leaves out."""
        if self.builtin:
            return "TCP" if key == "protocol" else None
        items = self.node.items if self.node is not None else None
        node = items.properties.get(key) if items is not None else None
        return node.default_value if node is not None else None


def field_type(resource: Resource) -> FieldType:
    """The type of a resource's objects."""
    schema: Structural | None = getattr(resource.strategy, "schema", None)
    return FieldType(node=schema, builtin=schema is None)


def element(item: Any, list_: FieldType) -> str:
    """Path element of an item: `k:{"name":"a"}` in a keyed list, `v:"a"` in a set."""
    keys = list_.list_type().keys
    if not keys:
        return "v:" + _text(item)
    found: Obj = {}
    for key in keys:
        value = item.get(key) if isinstance(item, dict) else None
        if value is None:
            value = list_.key_default(key)
        if value is not None:
            found[key] = value
    return "k:" + _text(found)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
