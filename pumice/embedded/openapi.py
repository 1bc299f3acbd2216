"""OpenAPI v3 documents: what kubectl reads before it validates, applies and explains.

There is one document for each group version. Kinds of CRDs have their schema; built-in ones have only their name, so
that kubectl uses its own knowledge of them. Each path lists `dryRun` and `fieldValidation`, without which kubectl would
take the server for one that cannot do either.
"""

import copy

from pumice.api.meta import Raw
from pumice.embedded.discovery import VERSION
from pumice.embedded.patches import APPLY, JSON_PATCH, MERGE_PATCH
from pumice.embedded.resources import Resource, ResourceRegistry

V2_JSON: Raw = {
    "swagger": "2.0",
    "info": {"title": "Pumice embedded API server", "version": VERSION},
    "paths": {},
    "definitions": {},
}
"""The older document, empty: kubectl wants to see it when it meets a List, and skips what it lacks."""
V2_PROTOBUF_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_PROTOBUF = (
    b"\x0a\x032.0"  # swagger
    b"\x12\x0b\x0a\x06Pumice\x12\x011"  # info: title, version
    b"\x42\x00\x4a\x00"  # paths, definitions
)
"""The same as Protocol Buffers (`openapi.v2.Document`), which is how kubectl asks for it."""
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECT_META: Raw = {
    "description": "ObjectMeta is metadata that all persisted resources must have.",
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "creationTimestamp": {"type": "string", "format": "date-time"},
        "deletionTimestamp": {"type": "string", "format": "date-time"},
        "finalizers": {"type": "array", "items": _TEXT},
        "generateName": _TEXT,
        "generation": {"type": "integer", "format": "int64"},
        "labels": _TEXTS,
        "name": _TEXT,
        "namespace": _TEXT,
        "ownerReferences": {"type": "array", "items": {"type": "object"}},
        "resourceVersion": _TEXT,
        "uid": _TEXT,
    },
}
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")


def document(registry: ResourceRegistry, segments: list[str]) -> Raw | None:
    """The document at `/openapi/<segments>`; None where there is none."""
    if segments == ["v3"]:
        return {"paths": {root: _reference(root) for root in _roots(registry)}}
    if segments[:1] != ["v3"] or "/".join(segments[1:]) not in _roots(registry):
        return None
    group, version = ("", segments[2]) if segments[1] == "api" else (segments[2], segments[3])
    resources = [
        each for each in registry.all() if (each.kind.group, each.kind.version) == (group, version)
    ]
    return _document(resources)


def _roots(registry: ResourceRegistry) -> list[str]:
    """Paths of all group versions, without the leading slash."""
    return [
        f"apis/{group}/{version}" if group else f"api/{version}"
        for group in ("", *registry.groups())
        for version in registry.versions(group)
    ]


def _reference(root: str) -> Raw:
    return {"serverRelativeURL": f"/openapi/v3/{root}"}


def _document(resources: list[Resource]) -> Raw:
    paths: Raw = {}
    schemas: Raw = {_META: _OBJECT_META}
    for resource in resources:
        collection, single = _path(resource), _path(resource) + "/{name}"
        paths[collection] = _operations(resource, {"get": "list", "post": "post"})
        paths[single] = _operations(
            resource, {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
        )
        schemas[_schema_name(resource)] = _schema(resource)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Pumice embedded API server", "version": VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _path(resource: Resource) -> str:
    return resource.kind.collection("{namespace}")


def _schema_name(resource: Resource) -> str:
    kind = resource.kind
    group = ".".join(reversed(kind.group.split("."))) if "." in kind.group else kind.group
    return f"{group or 'io.k8s.api.core'}.{kind.version}.{kind.kind}"


def _gvk(resource: Resource) -> Raw:
    kind = resource.kind
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _operations(resource: Resource, actions: dict[str, str]) -> Raw:
    reference = {"$ref": f"#/components/schemas/{_schema_name(resource)}"}
    content = {"application/json": {"schema": reference}}
    operations: Raw = {}
    for method, action in actions.items():
        operation: Raw = {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": _gvk(resource),
            "responses": {"200": {"description": "OK", "content": content}},
        }
        if method != "get":
            operation["parameters"] = [
                {"name": name, "in": "query", "schema": _TEXT} for name in _PARAMETERS
            ]
        if method == "patch":
            media = (APPLY, JSON_PATCH, MERGE_PATCH)
            operation["requestBody"] = {"content": {each: {"schema": {}} for each in media}}
        operations[method] = operation
    return operations


def _schema(resource: Resource) -> Raw:
    schema: Raw = copy.deepcopy(resource.schema) if resource.schema else {"type": "object"}
    properties = schema.setdefault("properties", {})
    properties["apiVersion"] = {**_TEXT, "description": "Version of this representation."}
    properties["kind"] = {**_TEXT, "description": "Kind of this object."}
    properties["metadata"] = {"allOf": [{"$ref": f"#/components/schemas/{_META}"}]}
    if resource.schema is None:
        schema["x-kubernetes-preserve-unknown-fields"] = True
        for part in ("spec", "status"):
            properties[part] = {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            }
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema
