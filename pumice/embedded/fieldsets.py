"""Sets of fields: which leaves a value has, in the form that `managedFields` stores.

A path is a tuple of elements as FieldsV1 spells them: `f:spec`, `k:{"name":"a"}`, `v:"x"`. A set of
paths is an ordinary Python set, so that what managers own is set algebra.

Source: Kubernetes documentation, "Server-Side Apply".
"""

import json
from collections.abc import Iterator, Set
from typing import Any

from pumice.embedded.fieldtypes import FieldType, element
from pumice.embedded.storage import Obj

Path = tuple[str, ...]
MISSING = object()
_SERVER_METADATA = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generateName",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def leaves(obj: Obj, type_: FieldType) -> set[Path]:
    """All fields of an object that a manager may own."""
    found: set[Path] = set()
    for name, value in _owned_parts(obj):
        if name == "metadata":
            for field, part in value.items():
                if field not in _SERVER_METADATA:
                    below = type_.child(name).child(field)
                    found.update(_leaves(part, below, ("f:metadata", f"f:{field}")))
        else:
            found.update(_leaves(value, type_.child(name), (f"f:{name}",)))
    return found


def _owned_parts(obj: Obj) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in obj.items() if name not in {"apiVersion", "kind"})


def _leaves(value: Any, type_: FieldType, path: Path) -> Iterator[Path]:
    if isinstance(value, dict) and value and not type_.atomic_map():
        for name, part in value.items():
            yield from _leaves(part, type_.child(name), (*path, f"f:{name}"))
    elif isinstance(value, list) and value and type_.list_type().name != "atomic":
        keyed = type_.list_type().name == "map"
        for item in value:
            here = (*path, element(item, type_))
            yield here
            if keyed and isinstance(item, dict):
                for name, part in item.items():
                    yield from _leaves(part, type_.item().child(name), (*here, f"f:{name}"))
    else:
        yield path


def value_at(obj: Any, type_: FieldType, path: Path) -> Any:
    """The value at a path; `MISSING` where there is none."""
    for step in path:
        if step.startswith("f:"):
            if not isinstance(obj, dict) or step[2:] not in obj:
                return MISSING
            obj, type_ = obj[step[2:]], type_.child(step[2:])
        else:
            index = _index(obj, type_, step)
            if index is None:
                return MISSING
            obj, type_ = obj[index], type_.item()
    return obj


def remove(obj: Obj, type_: FieldType, path: Path, kept: Set[Path] = frozenset()) -> None:
    """Remove the value at a path, in place, if it is there.

    A list or map that is left empty goes too, unless it is a field of the object itself or one of
    those to be kept.
    """
    _remove(obj, type_, path, 0, kept)


def _remove(value: Any, type_: FieldType, path: Path, depth: int, kept: Set[Path]) -> None:
    step = path[depth]
    key: Any
    if step.startswith("f:"):
        key = step[2:]
        if not isinstance(value, dict) or key not in value:
            return
        below = type_.child(key)
    else:
        key = _index(value, type_, step)
        if key is None:
            return
        below = type_.item()
    if depth + 1 < len(path):
        _remove(value[key], below, path, depth + 1, kept)
        if depth == 0 or value[key] not in ({}, []) or path[: depth + 1] in kept:
            return
    del value[key]


def _index(items: Any, type_: FieldType, step: str) -> int | None:
    if not isinstance(items, list):
        return None
    return next((at for at, item in enumerate(items) if element(item, type_) == step), None)


def differences(old: Obj, new: Obj, type_: FieldType) -> tuple[set[Path], set[Path]]:
    """Fields that are new or have another value, and fields that are gone."""
    parts = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    before = {name: old[name] for name in parts if name in old}
    after = {name: new[name] for name in parts if name in new}
    old_leaves, new_leaves = leaves(before, type_), leaves(after, type_)
    changed = {
        path
        for path in new_leaves
        if path not in old_leaves
        or (path[-1][0] == "f" and value_at(before, type_, path) != value_at(after, type_, path))
    }
    return changed, old_leaves - new_leaves


def encode(paths: Set[Path]) -> Obj:
    """A set as FieldsV1: nested objects, `.` for an inner field that is itself in the set."""
    root: Obj = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return _without_leaf_dots(root)


def _without_leaf_dots(node: Obj) -> Obj:
    return {
        step: {} if below.keys() == {"."} else _without_leaf_dots(below)
        for step, below in node.items()
    }


def decode(fields: Obj) -> set[Path]:
    """Read FieldsV1."""
    return set(_decoded(fields, ()))


def _decoded(node: Obj, path: Path) -> Iterator[Path]:
    for step, below in node.items():
        if step == ".":
            yield path
        elif not below:
            yield (*path, step)
        else:
            yield from _decoded(below, (*path, step))


def shown(path: Path) -> str:
    """A path as conflicts name it: `.spec.containers[name="a"].image`."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            keys = json.loads(rest)
            inner = ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items())
            text += f"[{inner}]"
        else:
            text += f"[={rest}]"
    return text
