"""Server-side apply: merge a configuration, update field ownership, detect conflicts.

Source: Kubernetes documentation, "Server-Side Apply", sections on conflicts, merge strategy and
transferring ownership.
"""

from collections.abc import Set
from typing import Any

from pumice.embedded import fieldsets, statuses
from pumice.embedded.fieldsets import Path
from pumice.embedded.fieldtypes import FieldType, element, field_type
from pumice.embedded.metadata import check_shape
from pumice.embedded.objects import Objects
from pumice.embedded.ownership import ManagerKey, Managers, Owned, Ownership
from pumice.embedded.resources import Call
from pumice.embedded.storage import Obj, Version
from pumice.embedded.strategic import in_order


def apply(objects: Objects, call: Call, config: Obj) -> tuple[Version, bool]:
    """Apply a configuration.

    Returns:
        The object, and whether it was created.

    Raises:
        ApiStatusError: 409 naming the managers that own what the configuration changes, and
            whatever a creation or an update may be answered.
    """
    check_shape(config, call.resource.kind, strict=call.resource.strategy.custom)
    if config["metadata"].get("managedFields"):
        raise statuses.bad_request("metadata.managedFields must be nil")
    current = objects.storage.get(call.resource.key, call.namespace, call.name)
    if current is None:
        return _create(objects, call, config), True
    version = objects.change(
        call, lambda old: _applied(objects.ownership, call, old, config), records=False
    )
    return version, False


def _create(objects: Objects, call: Call, config: Obj) -> Version:
    if call.subresource:
        raise statuses.not_found(call.resource.kind, call.name)
    key = ManagerKey("Apply", call.manager)
    record: Obj = {"metadata": {}}
    fields = objects.ownership.claimed(call, config)
    objects.ownership.write(record, {key: objects.ownership.owned(call, fields, None)})
    config["metadata"].setdefault("name", call.name)
    return objects.create(call, config, record["metadata"].get("managedFields"))


def _applied(ownership: Ownership, call: Call, current: Version, config: Obj) -> Obj:
    live, type_ = current.obj, field_type(call.resource)
    managers = ownership.read(live) or ownership.first(call, live)
    key = ManagerKey("Apply", call.manager, call.subresource)
    fields, before = ownership.claimed(call, config), managers.get(key)
    taken = _taken(managers, key, fields, live, config, type_)
    if taken and not call.force:
        raise _conflict(taken, managers)
    for other, paths in taken.items():
        owned = managers[other]
        managers[other] = Owned(owned.fields - paths, owned.api_version, owned.time)
    obj: Obj = merged(current.copy(), config, type_)
    if before is not None:
        _prune(obj, type_, before.fields - fields, fields, managers, key)
    managers[key] = ownership.owned(call, fields, before)
    ownership.write(obj, managers)
    return obj


def _taken(
    managers: Managers, key: ManagerKey, fields: set[Path], live: Obj, config: Obj, type_: FieldType
) -> dict[ManagerKey, set[Path]]:
    """Fields that others own and that the configuration would change, by owner."""
    taken: dict[ManagerKey, set[Path]] = {}
    for other in sorted(managers):
        if other == key:
            continue
        paths = {
            path
            for path in fields & managers[other].fields
            if path[-1][0] == "f"
            and fieldsets.value_at(live, type_, path) != fieldsets.value_at(config, type_, path)
        }
        if paths:
            taken[other] = paths
    return taken


def _conflict(taken: dict[ManagerKey, set[Path]], managers: Managers) -> statuses.ApiStatusError:
    causes = []
    for key, paths in taken.items():
        below = f' with subresource "{key.subresource}"' if key.subresource else ""
        using = f" using {managers[key].api_version}" if key.operation == "Update" else ""
        who = f'"{key.manager}"{below}{using}'
        causes += [(who, fieldsets.shown(path)) for path in sorted(paths)]
    return statuses.apply_conflict(causes)


def _prune(
    obj: Obj,
    type_: FieldType,
    dropped: Set[Path],
    kept: Set[Path],
    managers: Managers,
    key: ManagerKey,
) -> None:
    """Remove what the manager has owned and no longer mentions, unless another manager owns it."""
    others = {path for other, owned in managers.items() if other != key for path in owned.fields}
    # An item is removed before its fields: without its keys it could not be found.
    for path in sorted(dropped):
        if not any(other[: len(path)] == path for other in others):
            fieldsets.remove(obj, type_, path, kept)


def merged(live: Any, config: Any, type_: FieldType) -> Any:
    """A configuration merged into a value, which is edited where it can be.

    Maps are merged field by field, keyed lists item by item, sets are united; scalars, and lists and
    maps that count as one value, are replaced.
    """
    if isinstance(config, dict) and isinstance(live, dict) and not type_.atomic_map():
        for name, value in config.items():
            if value is not None:
                live[name] = merged(live.get(name), value, type_.child(name))
        return live
    if isinstance(config, list) and isinstance(live, list):
        return _merged_list(live, config, type_)
    return config


def _merged_list(live: list[Any], config: list[Any], type_: FieldType) -> list[Any]:
    kind = type_.list_type().name
    if kind == "atomic":
        return config
    items = {element(item, type_): item for item in live}
    order = [element(item, type_) for item in config]
    for step, item in zip(order, config, strict=True):
        items[step] = merged(items.get(step), item, type_.item()) if kind == "map" else item
    before = [element(item, type_) for item in live]
    return [items[step] for step in in_order(list(items), before, order)]
