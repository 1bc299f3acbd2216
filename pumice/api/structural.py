"""Structural schemas of CRDs: check, default and prune raw objects as the API server does.

A schema is compiled once into nodes; each node knows whether anything below it has defaults or could be pruned, so that
a preserved pod template costs nothing. Messages have the wording of kube-apiserver, because users see both in the same
terminal.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", sections
on structural schemas, pruning, defaulting and nullable.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.structural_rules import Path, add, check_keywords, render, rules_of

Json = Any

_META_FIELDS = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_RESOURCE_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_LARGEST_COUNTED = 2**53
_CONTAINERS = frozenset({dict, list})
_NAMES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


class Structural:
    """One node of a compiled schema, and everything below it.

    `validate`, `default` and `prune_paths` are for callers. The attributes are for other nodes and for
    server-side apply.

    Attributes:
        properties: Named fields.
        additional: Schema of the values of a map's keys that are not named.
        items: Schema of a list's items.
        choices: Values of which it must be one; empty for any.
        list_type: `x-kubernetes-list-type`: `atomic`, `set` or `map`.
        list_map_keys: Keys that identify the items of a `map` list.
        map_type: `x-kubernetes-map-type`: `granular` or `atomic`.
    """

    __slots__ = (
        "additional",
        "choices",
        "default_value",
        "embedded",
        "has_default",
        "has_defaults_below",
        "int_or_string",
        "items",
        "list_map_keys",
        "list_type",
        "map_type",
        "nullable",
        "open_map",
        "plain",
        "preserve",
        "properties",
        "prunes",
        "required",
        "root",
        "rules",
        "type_name",
        "types_expected",
    )

    def __init__(self, schema: dict[str, Any], *, root: bool = False) -> None:
        check_keywords(schema)
        self.root = root
        self.type_name: str = schema.get("type", "")
        self.types_expected = _TYPES.get(self.type_name, ())
        self.int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
        self.nullable = bool(schema.get("nullable"))
        self.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = root or bool(schema.get("x-kubernetes-embedded-resource"))
        self.choices: tuple[Json, ...] = tuple(schema.get("enum", ()))
        self.required: tuple[str, ...] = tuple(schema.get("required", ()))
        self.has_default = "default" in schema
        self.default_value = schema.get("default")
        self.list_type: str = schema.get("x-kubernetes-list-type", "")
        self.list_map_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        self.map_type: str = schema.get("x-kubernetes-map-type", "")
        self.properties = {
            name: Structural(child) for name, child in schema.get("properties", {}).items()
        }
        additional, items = schema.get("additionalProperties"), schema.get("items")
        self.additional = Structural(additional) if isinstance(additional, dict) else None
        self.open_map = additional is True
        self.items = Structural(items) if isinstance(items, dict) else None
        self.rules = tuple(rules_of(schema, Structural))
        # A scalar whose only check is its type, as most values are.
        self.plain = not self.rules and self.type_name not in {"object", "array"}
        children = tuple(self._children())
        self.has_defaults_below: bool = any(
            child.has_default or child.has_defaults_below for child in children
        )
        open_ended = self.preserve or self.open_map or self.type_name != "object"
        self.prunes: bool = (
            self.embedded
            or not (open_ended or self.additional)
            or any(child.prunes for child in children)
        )

    def _children(self) -> Iterator["Structural"]:
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items

    def validate(self, value: Json, path: str = "") -> list[FieldError]:
        """All violations in a value, in the order of the document.

        Args:
            value: The value, already pruned and defaulted if that is wanted.
            path: Where the value stands, put before every path.
        """
        errors: list[FieldError] = []
        self.check(value, (path,) if path else (), errors)
        return errors

    def default(self, value: Json) -> Json:
        """Write defaults into a value, in place.

        A null that the schema does not allow is replaced by the default, or removed if there is none.
        """
        if self.has_default and value is None and not self.nullable:
            value = copy.deepcopy(self.default_value)
        self.fill(value)
        return value

    def prune_paths(self, value: Json) -> list[str]:
        """Prune in place.

        Returns:
            The paths of the fields dropped.
        """
        dropped: list[Path] = []
        self.drop(value, (), dropped)
        return [render(path) for path in dropped]

    def at(self, path: str) -> "Structural | None":
        """The node of a field; None where the schema has none, or where a key has dots.

        Args:
            path: A path as `validate` and `prune_paths` give it.
        """
        node: Structural | None = self
        for part in path.split(".") if path else ():
            name, *indexes = part.split("[")
            node = node.properties.get(name, node.additional) if node is not None else None
            for _ in indexes:
                node = node.items if node is not None else None
        return node

    def names_beside(self, path: str) -> list[str]:
        """Names that the schema has at the parent of a path."""
        outer = path.rpartition(".")[0]
        if self.root and outer == "metadata":
            return sorted(_META_FIELDS)
        node = self.at(outer)
        return sorted(node.properties) if node is not None else []

    @property
    def expected(self) -> str:
        """The type of a value; `int-or-string` for one that may be either, empty for any."""
        return "int-or-string" if self.int_or_string else self.type_name

    def check(self, value: Json, path: Path, errors: list[FieldError]) -> None:
        """Add all violations in a value."""
        kind = type(value)
        if kind not in self.types_expected and not self._accepts(value, path, errors):
            return
        for rule in self.rules:
            rule(value, path, errors)
        if kind is dict:
            for name in self.required:
                if name not in value:
                    add(errors, (name, path), "Required value", "REQUIRED", "FieldValueRequired")
            if self.embedded and not self.root:
                for name in ("apiVersion", "kind"):
                    if not value.get(name):
                        add(
                            errors,
                            (name, path),
                            "Required value",
                            "REQUIRED",
                            "FieldValueRequired",
                        )
            properties, additional = self.properties, self.additional
            for name, item in value.items():
                child = properties.get(name, additional)
                if child is None or (child.plain and type(item) in child.types_expected):
                    continue
                if not (self.root and name in _RESOURCE_FIELDS):
                    child.check(item, (name, path), errors)
        elif kind is list:
            if self.items is not None:
                for index, item in enumerate(value):
                    self.items.check(item, (index, path), errors)
            if self.list_type in {"map", "set"}:
                self._unique(value, path, errors)

    def _accepts(self, value: Json, path: Path, errors: list[FieldError]) -> bool:
        """True if a value is accepted although its Python type is not the expected one."""
        if value is None:
            if self.nullable or not (self.type_name or self.int_or_string):
                return False
        elif self.int_or_string:
            if type(value) in {int, str}:
                return True
        elif not self.type_name or (
            # Go reads 1.0 as the integer 1, as long as floats count one by one.
            self.type_name == "integer"
            and type(value) is float
            and value.is_integer()
            and abs(value) < _LARGEST_COUNTED
        ):
            return True
        expected = "integer,string" if self.int_or_string else self.type_name
        found = _NAMES[type(value)]
        message = f'Invalid value: "{found}": {render(path)} in body must be of type {expected}: "{found}"'
        add(errors, path, message, "TYPE", "FieldValueTypeInvalid")
        return False

    def _unique(self, value: list[Json], path: Path, errors: list[FieldError]) -> None:
        seen: set[str] = set()
        for index, item in enumerate(value):
            if self.list_type == "map":
                if not isinstance(item, dict):
                    continue
                item = {key: item[key] for key in self.list_map_keys if key in item}
            text = json.dumps(item, separators=(",", ":"), sort_keys=True)
            if text in seen:
                message = f"Duplicate value: {text}"
                add(errors, (index, path), message, "DUPLICATE", "FieldValueDuplicate")
            seen.add(text)

    def fill(self, value: Json) -> None:
        """Write defaults below this node, in place."""
        if isinstance(value, dict):
            self._fill_object(value)
        elif isinstance(value, list) and self.items is not None:
            items = self.items
            for index, item in enumerate(value):
                if item is None and items.has_default and not items.nullable:
                    value[index] = copy.deepcopy(items.default_value)
                items.fill(value[index])

    def _fill_object(self, value: dict[str, Json]) -> None:
        if self.has_defaults_below:
            for name, child in self.properties.items():
                if child.has_default and (
                    name not in value or (value[name] is None and not child.nullable)
                ):
                    value[name] = copy.deepcopy(child.default_value)
        nulls = []
        for name, item in value.items():
            child_or_none = self.properties.get(name, self.additional)
            if child_or_none is None or (self.root and name in _RESOURCE_FIELDS):
                continue
            if item is None:
                if not child_or_none.nullable:
                    nulls.append(name)
            elif type(item) in _CONTAINERS:
                child_or_none.fill(item)
        for name in nulls:
            del value[name]

    def drop(self, value: Json, path: Path, dropped: list[Path]) -> None:
        """Prune in place and record the removed paths."""
        if not self.prunes:
            return
        if isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                self.items.drop(item, (index, path), dropped)
        # An object in place of a list is kept, and reported as a wrong type.
        elif self.items is None and isinstance(value, dict):
            self._prune_object(value, path, dropped)

    def _prune_object(self, value: dict[str, Json], path: Path, dropped: list[Path]) -> None:
        unknown = []
        for name, item in value.items():
            if self.embedded and name in _RESOURCE_FIELDS:
                if name == "metadata" and isinstance(item, dict):
                    for field in [each for each in item if each not in _META_FIELDS]:
                        del item[field]
                        dropped.append((field, (name, path)))
                continue
            child = self.properties.get(name, self.additional)
            if child is not None:
                child.drop(item, (name, path), dropped)
            elif not (self.preserve or self.open_map):
                unknown.append(name)
        for name in unknown:
            del value[name]
            dropped.append((name, path))


def compile(schema: dict[str, Any]) -> Structural:  # noqa: A001 - the word of the field
    """Compile the schema of a whole object (`openAPIV3Schema` of a CRD's version).

    `apiVersion`, `kind` and `metadata` are known without being named in the schema.

    Raises:
        SchemaError: The schema is not a structural schema.
    """
    return Structural(schema, root=True)
