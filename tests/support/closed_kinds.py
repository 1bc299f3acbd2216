"""Kinds of other projects on the API server of tests, with a schema of the fields that the chart uses.

The schemas are closed, so that the API server refuses a misspelt field where it validates strictly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.controlplane.cluster import ControlPlane

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}


def closed(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """The schema of an object with these fields and no others."""
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def install(plane: ControlPlane, group: str, specs: Mapping[str, Schema]) -> None:
    """Install namespaced kinds of version v1, by the schemas of their specs, and wait until they are served."""
    plane.define(*(_definition(group, *each) for each in specs.items()))


def remove(plane: ControlPlane, group: str, specs: Mapping[str, Schema]) -> None:
    """Delete the kinds, and with them all of their objects."""
    plane.delete(*(_definition(group, *each) for each in specs.items()))


def _definition(group: str, kind: str, spec: Schema) -> Schema:
    plural = f"{kind.lower()}s"
    schema = closed(("spec",), apiVersion=TEXT, kind=TEXT, metadata={"type": "object"}, spec=spec)
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
