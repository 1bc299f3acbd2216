"""JSON Schemas of the kinds, for editors and other tools that check manifests while they are written.

They follow from the structural schemas of the CRDs. What only an API server understands (`x-kubernetes-…`) is left
out, and what it drops without an error, such as a misspelt field, is refused. The fields of pod templates, which the
CRDs leave open, come from `pumice.api.pods`; further ones are allowed there.

Version 7 of the format, which editors read: https://json-schema.org/draft-07
"""

from typing import Any

from pumice.api.crds.definitions import schema_of
from pumice.api.kinds import Kind
from pumice.api.pods import ROOT, pod_types

Schema = dict[str, Any]

_OF_KUBERNETES = "x-kubernetes-"
_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_NUMBERS = ("int32", "int64", "float", "double")
"""Formats that only OpenAPI has."""
_SCALARS: dict[str, Schema] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer"},
    "int64": {"type": "integer"},
    "quantity": {"type": ["number", "string"]},
    "int-or-string": {"type": ["integer", "string"]},
    "time": {"type": "string", "format": "date-time"},
    "any": {},
}
"""Scalars of the notation of `pod_types`."""


def json_schema(kind: Kind) -> Schema:
    """The JSON Schema of manifests of a kind."""
    found = _converted(schema_of(kind))
    found["properties"] |= {
        "apiVersion": {"const": kind.api_version},
        "kind": {"const": kind.kind},
        "metadata": {"type": "object"},
    }
    found["required"] = ["apiVersion", "kind", *found.get("required", ())]
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"{kind.kind} of {kind.api_version}",
    }
    return {**head, **found, **_definitions(found)}


def _converted(schema: Schema) -> Schema:
    """A structural schema as a JSON Schema."""
    found = {
        key: value
        for key, value in schema.items()
        if not key.startswith(_OF_KUBERNETES) and key != "nullable"
    }
    if found.get("format") in _NUMBERS:
        del found["format"]
    if schema.get(f"{_OF_KUBERNETES}int-or-string"):
        found.pop("type", None)
        found |= _INT_OR_STRING
    is_open = bool(schema.get(f"{_OF_KUBERNETES}preserve-unknown-fields"))
    if "properties" in schema:
        found["properties"] = {
            name: _converted(each) for name, each in schema["properties"].items()
        }
        for name in found["properties"].keys() - set(schema.get("required", ())):
            _allow_null(found["properties"][name])
        if is_open and "containers" in schema["properties"]:
            _add_pod_fields(found)
        if not is_open:
            found.setdefault("additionalProperties", False)
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = _converted(schema["additionalProperties"])
    if "items" in schema:
        found["items"] = _converted(schema["items"])
    if schema.get("nullable"):
        _allow_null(found)
    return found


def _allow_null(found: Schema) -> None:
    """Allow null for a field, which an API server takes as if the field were absent."""
    null = {"type": "null"}
    if "anyOf" in found and null not in found["anyOf"]:
        found["anyOf"] = [*found["anyOf"], null]
    types = found.get("type", ["null"])
    types = [types] if isinstance(types, str) else types
    if "null" not in types:
        found["type"] = [*types, "null"]
    if "enum" in found and None not in found["enum"]:
        found["enum"] = [*found["enum"], None]


def _add_pod_fields(spec: Schema) -> None:
    """Add the fields of a pod's spec, and those of its containers, to what the CRD says about them."""
    own: Schema = spec["properties"]
    for field, notation in pod_types()[pod_types()[ROOT]["spec"]].items():
        if field not in own:
            own[field] = _of_notation(notation)
            _allow_null(own[field])
            continue
        items = own[field]["items"]
        named = _of_notation(notation)["items"]
        own[field]["items"] = {"allOf": [named], "required": items["required"]}


def _of_notation(notation: str) -> Schema:
    """A type in the notation of `pod_types`."""
    if notation.startswith("[]"):
        return {"type": "array", "items": _of_notation(notation[2:])}
    if notation.startswith("{}"):
        return {"type": "object", "additionalProperties": _of_notation(notation[2:])}
    if notation in _SCALARS:
        return dict(_SCALARS[notation])
    return {"$ref": f"#/definitions/{notation}"}


def _definitions(found: Schema) -> Schema:
    """The types of `pod_types` that a schema refers to, and those that they refer to."""
    definitions: Schema = {}
    waiting = _references(found)
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            fields = pod_types()[name]
            properties = {field: _of_notation(notation) for field, notation in fields.items()}
            for each in properties.values():
                _allow_null(each)
            definitions[name] = {"type": ["object", "null"], "properties": properties}
            waiting += _references(definitions[name])
    return {"definitions": dict(sorted(definitions.items()))} if definitions else {}


def _references(value: Any) -> list[str]:
    """Names of the definitions that a schema refers to."""
    if isinstance(value, list):
        return [name for each in value for name in _references(each)]
    if not isinstance(value, dict):
        return []
    found = [name for each in value.values() for name in _references(each)]
    if isinstance(value.get("$ref"), str):
        found.append(value["$ref"].rpartition("/")[2])
    return found
