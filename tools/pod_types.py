"""Write `pumice/api/pod_types.json`: the fields of pod templates and their types, as an API server serves them.

Run by hand when Kubernetes has a new version, against an API server of that version:
`kubectl get --raw /openapi/v2 | python -m tools.pod_types [--check] TABLE`. A test on the real control plane
fails when the table is not what its API server serves.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tools.generated import settle

Raw = dict[str, Any]

ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
LEAVES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
}
"""Types that OpenAPI describes as if they had no structure of their own."""


def table(openapi: Raw) -> str:
    """The table, one type a line, so that a difference between versions can be read.

    Args:
        openapi: What an API server answers to `GET /openapi/v2`.
    """
    types: dict[str, dict[str, str]] = {}
    _collect(openapi["definitions"], ROOT, types)
    lines = [f"{json.dumps(name)}: {json.dumps(types[name])}" for name in sorted(types)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _collect(definitions: Raw, name: str, types: dict[str, dict[str, str]]) -> None:
    """Add a type and all that it refers to."""
    short = _short(name)
    if name in LEAVES or short in types:
        return
    properties = definitions[name]["properties"]
    types[short] = {field: _notation(properties[field]) for field in sorted(properties)}
    for schema in properties.values():
        if reference := _reference(schema):
            _collect(definitions, reference, types)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _reference(schema: Raw) -> str:
    """The type that a field, its items or its values refer to; empty when it is none."""
    for inner in (schema, schema.get("items"), schema.get("additionalProperties")):
        if inner and "$ref" in inner:
            return str(inner["$ref"]).rpartition("/")[2]
    return ""


def _notation(schema: Raw) -> str:
    """A type as the table writes it: `string`, `int32`, `[]Container`, `{}quantity`."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return LEAVES.get(name) or _short(name)
    if schema["type"] == "array":
        return "[]" + _notation(schema["items"])
    if schema["type"] == "object":
        return "{}" + _notation(schema["additionalProperties"])
    return str(schema["format"] if schema["type"] == "integer" else schema["type"])


def main(arguments: list[str] | None = None) -> int:
    """Write or check; exit code 1 when the table is missing or stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.pod_types", description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare, exit 1 on a difference")
    options = parser.parse_args(arguments)
    return 0 if settle(options.table, table(json.load(sys.stdin)), check=options.check) else 1


if __name__ == "__main__":
    sys.exit(main())
