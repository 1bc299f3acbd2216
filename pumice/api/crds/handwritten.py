"""Schemas of the parts that stay raw: the pod template and the volume claim.

Only what the API server must enforce or index is spelled out; everything else is kept as it is, so
that fields younger than Pumice survive (`x-kubernetes-preserve-unknown-fields`).
"""

from typing import Any

__all__ = ["HANDWRITTEN"]

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
