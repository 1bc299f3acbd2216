"""From a struct to its structural OpenAPI schema.

Kubernetes' structural schemas: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/
custom-resource-definitions/#specifying-a-structural-schema

The parts that stay raw, the pod template and the volume claim, have schemas written by hand: only what the API server must
enforce or index is spelled out, and everything else is kept, so that fields younger than Pumice survive.
"""

import inspect
import re
import types
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from pumice.api.markers import Marker, Preserved

_STRING_MAP = {"type": "object", "additionalProperties": {"type": "string"}}

_CONTAINER = {
    "type": "object",
    "description": "One container.",
    "required": ["name"],
    "properties": {"name": {"type": "string"}},
    "x-kubernetes-preserve-unknown-fields": True,
}


def _containers(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "type": "array",
        "items": _CONTAINER,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }


_POD_TEMPLATE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "metadata": {
            "description": "Labels and annotations of the pods.",
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "namespace": {"type": "string"},
                "labels": _STRING_MAP,
                "annotations": _STRING_MAP,
                "finalizers": {"type": "array", "items": {"type": "string"}},
                # Go clients write it into every template, as null, which server-side apply does not drop.
                "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
            },
        },
        "spec": {
            "description": "Specification of the pods; every field that a Pod knows is kept.",
            "type": "object",
            "required": ["containers"],
            "properties": {
                "containers": _containers("The containers."),
                "initContainers": _containers("Containers that run first."),
            },
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}

_VOLUME_CLAIM: dict[str, Any] = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
}

HANDWRITTEN: dict[str, dict[str, Any]] = {
    "PodTemplate": _POD_TEMPLATE,
    "VolumeClaim": _VOLUME_CLAIM,
}
"""Name in a `Preserved` marker to schema."""


Schema = dict[str, Any]

QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
    "x-kubernetes-int-or-string": True,
}
"""Schema of a quantity, as Kubernetes' own generators write it."""

_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
}
_ATTRIBUTE = re.compile(r"^    (\w+): (.*)$")


def struct_schema(struct: type[msgspec.Struct], *, omit: tuple[str, ...] = ()) -> Schema:
    """Schema of a struct with all its fields, descriptions and constraints.

    Args:
        struct: The struct.
        omit: Attribute names to leave out (`api_version`, `kind` and `metadata` of a root object).
    """
    summary, attributes = _documentation(struct)
    hints = get_type_hints(struct, include_extras=True)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in msgspec.structs.fields(struct):
        if field.name in omit:
            continue
        marker, preserved, annotation = _unwrap(hints[field.name])
        schema = _with_marker(_schema(annotation, marker, preserved), marker)
        if description := attributes.get(field.name):
            schema.pop("description", None)
            schema = {"description": description, **schema}
        properties[field.encode_name] = schema
        if marker.required:
            required.append(field.encode_name)
    result: Schema = {"description": summary, "type": "object"}
    if required:
        result["required"] = sorted(required)
    result["properties"] = dict(sorted(properties.items()))
    return result


def _unwrap(annotation: Any) -> tuple[Marker, Preserved | None, Any]:
    """Split `Annotated[T | None, markers…]` into its markers and T."""
    marker, preserved = Marker(), None
    if get_origin(annotation) is Annotated:
        annotation, *extras = get_args(annotation)
        for extra in extras:
            if isinstance(extra, Marker):
                marker = extra
            elif isinstance(extra, Preserved):
                preserved = extra
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            annotation = members[0]
    return marker, preserved, annotation


def _schema(annotation: Any, marker: Marker, preserved: Preserved | None) -> Schema:
    if preserved is not None:
        return dict(HANDWRITTEN[preserved.kind])
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    if annotation is int:
        return {"type": "integer", "format": marker.format or "int32"}
    if inspect.isclass(annotation) and issubclass(annotation, msgspec.Struct):
        return struct_schema(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is list:
        return {"type": "array", "items": _item(arguments[0], marker)}
    if origin is dict:
        values = dict(QUANTITY) if marker.quantity else _item(arguments[1], Marker())
        return {"type": "object", "additionalProperties": values}
    raise TypeError(f"no schema for {annotation!r}")


def _item(annotation: Any, marker: Marker) -> Schema:
    schema = _schema(_unwrap(annotation)[2], Marker(), None)
    if marker.enum is not None:
        schema["enum"] = list(marker.enum)
    return schema


def _with_marker(schema: Schema, marker: Marker) -> Schema:
    """Add what the marker says; the enum of a list belongs to its items and is there already."""
    named: dict[str, Any] = {
        "default": marker.default,
        "enum": None if schema.get("type") == "array" or marker.enum is None else list(marker.enum),
        "minimum": marker.minimum,
        "maximum": marker.maximum,
        "minLength": marker.min_length,
        "maxLength": marker.max_length,
        "minItems": marker.min_items,
        "pattern": marker.pattern,
        "nullable": marker.nullable or None,
        "format": marker.format if schema.get("type") == "string" else None,
        "x-kubernetes-list-type": _list_type(marker),
        "x-kubernetes-list-map-keys": list(marker.list_map_keys) if marker.list_map_keys else None,
    }
    schema = schema | {key: value for key, value in named.items() if value is not None}
    if marker.validations:
        schema["x-kubernetes-validations"] = [
            {"rule": each.rule, "message": each.message} for each in marker.validations
        ]
    return _undefaulted(schema) if marker.partial else schema


def _undefaulted(schema: Any) -> Any:
    """The schema without defaults, so that nothing is written into an object."""
    if isinstance(schema, list):
        return [_undefaulted(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _undefaulted(each) for name, each in value.items()}
        if key == "properties"
        else _undefaulted(value)
        for key, value in schema.items()
        if key != "default"
    }


def _list_type(marker: Marker) -> str | None:
    if marker.list_map_keys:
        return "map"
    return "atomic" if marker.atomic else None


def _documentation(struct: type) -> tuple[str, dict[str, str]]:
    """First paragraph of a docstring and its `Attributes:` section, one text an attribute."""
    lines = inspect.cleandoc(struct.__doc__ or "").splitlines()
    summary = " ".join(_until_blank(lines))
    attributes: dict[str, str] = {}
    name = ""
    inside = False
    for line in lines:
        if line == "Attributes:":
            inside = True
        elif inside and (match := _ATTRIBUTE.match(line)):
            name = match[1]
            attributes[name] = match[2]
        elif inside and name and line.startswith("     "):
            attributes[name] += " " + line.strip()
        elif inside and line and not line.startswith(" "):
            break
    return summary, attributes


def _until_blank(lines: list[str]) -> list[str]:
    return lines[: lines.index("")] if "" in lines else lines
