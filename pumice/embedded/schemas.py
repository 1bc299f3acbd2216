"""Types of the fields of built-in kinds that the server reads, so that invalid objects are refused.

These are parts of schemas: other fields are stored unchanged. They are written as nested
literals: `{}` is an object, `{"*": x}` a map, `[x]` a list, a word a type.
"""

from typing import Any

from pumice.api import structural
from pumice.api.structural import Structural
from pumice.embedded import statuses

_QUANTITY = "quantity"
_QUANTITIES = {"*": _QUANTITY}
_TEXTS = {"*": "string"}
_SPECIAL: dict[str, dict[str, Any]] = {
    "int-or-string": {"x-kubernetes-int-or-string": True},
    _QUANTITY: {"anyOf": [{"type": "number"}, {"type": "string"}]},
}


def _schema(written: Any) -> dict[str, Any]:
    if isinstance(written, str):
        return _SPECIAL.get(written, {"type": written})
    if isinstance(written, list):
        return {"type": "array", "items": _schema(written[0])}
    if "*" in written:
        return {"type": "object", "additionalProperties": _schema(written["*"])}
    return {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {name: _schema(field) for name, field in written.items()},
    }


def _texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, "string")


def _whole(**fields: Any) -> Structural:
    return structural.compile(_schema({"spec": {}, "status": {}, **fields}))


_METADATA = {
    **_texts("name", "generateName", "namespace", "uid", "resourceVersion"),
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "finalizers": ["string"],
    "ownerReferences": [
        {
            **_texts("apiVersion", "kind", "name", "uid"),
            "controller": "boolean",
            "blockOwnerDeletion": "boolean",
        }
    ],
    "managedFields": [{}],
}
METADATA = Structural(_schema(_METADATA))
"""`metadata` of any object."""

PLAIN = _whole()
"""A kind without fields that the server reads."""

_CONDITIONS = [_texts("type", "status", "reason")]
_CONTAINERS = [
    {
        **_texts("name", "image", "imagePullPolicy"),
        "ports": [
            {"containerPort": "integer", "hostPort": "integer", **_texts("name", "protocol")}
        ],
        "env": [_texts("name", "value")],
        "resources": {"limits": _QUANTITIES, "requests": _QUANTITIES},
    }
]
_TOLERATIONS = [{**_texts("key", "operator", "value", "effect"), "tolerationSeconds": "integer"}]
_STATE = {
    "waiting": _texts("reason"),
    "running": {},
    "terminated": {"exitCode": "integer", "reason": "string"},
}
_POD_SPEC = {
    **_texts(
        "dnsPolicy",
        "nodeName",
        "preemptionPolicy",
        "priorityClassName",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "serviceAccountName",
    ),
    "affinity": {},
    "containers": _CONTAINERS,
    "initContainers": _CONTAINERS,
    "hostNetwork": "boolean",
    "nodeSelector": _TEXTS,
    "overhead": _QUANTITIES,
    "priority": "integer",
    "readinessGates": [_texts("conditionType")],
    "schedulingGates": [_texts("name")],
    "securityContext": {},
    "terminationGracePeriodSeconds": "integer",
    "tolerations": _TOLERATIONS,
    "volumes": [_texts("name")],
}
POD = _whole(
    spec=_POD_SPEC,
    status={
        **_texts("nominatedNodeName", "phase", "podIP", "qosClass", "reason"),
        "conditions": _CONDITIONS,
        "containerStatuses": [
            {"name": "string", "ready": "boolean", "restartCount": "integer", "state": _STATE}
        ],
    },
)
WORKLOAD = _whole(
    spec={
        **dict.fromkeys(("backoffLimit", "completions", "parallelism", "replicas"), "integer"),
        "completionMode": "string",
        "suspend": "boolean",
        "template": {"metadata": _METADATA, "spec": _POD_SPEC},
    }
)
"""A kind of which pods are made, of the template in its spec."""

NAMESPACE = _whole(spec={"finalizers": ["string"]}, status={"phase": "string"})
NODE = _whole(
    spec={"unschedulable": "boolean", "taints": [_texts("key", "value", "effect")]},
    status={
        "capacity": _QUANTITIES,
        "allocatable": _QUANTITIES,
        "conditions": _CONDITIONS,
        "addresses": [_texts("type", "address")],
        "nodeInfo": {},
    },
)
SERVICE = _whole(
    spec={
        **_texts("clusterIP", "externalName", "sessionAffinity", "type"),
        "ports": [
            {
                **_texts("name", "protocol"),
                "port": "integer",
                "nodePort": "integer",
                "targetPort": "int-or-string",
            }
        ],
        "selector": _TEXTS,
    }
)
CONFIG_MAP = _whole(data=_TEXTS, binaryData=_TEXTS)
SECRET = _whole(data=_TEXTS, stringData=_TEXTS, type="string")
EVENT = _whole(
    **_texts(
        "eventTime",
        "firstTimestamp",
        "lastTimestamp",
        "message",
        "reason",
        "reportingComponent",
        "type",
    ),
    count="integer",
    involvedObject=_texts("apiVersion", "fieldPath", "kind", "name", "namespace", "uid"),
    series={"count": "integer", "lastObservedTime": "string"},
    source=_texts("component", "host"),
)
PRIORITY_CLASS = _whole(value="integer", globalDefault="boolean", preemptionPolicy="string")
RUNTIME_CLASS = _whole(
    handler="string",
    overhead={"podFixed": _QUANTITIES},
    scheduling={"nodeSelector": _TEXTS, "tolerations": _TOLERATIONS},
)
CRD = _whole(
    spec={
        **_texts("group", "scope"),
        "names": {
            **_texts("kind", "listKind", "plural", "singular"),
            "shortNames": ["string"],
            "categories": ["string"],
        },
        "versions": [
            {
                "name": "string",
                "served": "boolean",
                "storage": "boolean",
                "schema": {"openAPIV3Schema": {}},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {
                        **_texts("name", "type", "jsonPath", "description", "format"),
                        "priority": "integer",
                    }
                ],
                "selectableFields": [_texts("jsonPath")],
            }
        ],
    },
    status={"conditions": _CONDITIONS},
)

DELETE_OPTIONS = Structural(
    _schema(
        {
            "dryRun": ["string"],
            "gracePeriodSeconds": "integer",
            "orphanDependents": "boolean",
            "preconditions": _texts("uid", "resourceVersion"),
            "propagationPolicy": "string",
        }
    )
)
BINDING = Structural(
    _schema(
        {
            "metadata": {**_texts("name", "uid", "resourceVersion"), "annotations": _TEXTS},
            "target": _texts("kind", "name"),
        }
    )
)
SCALE = Structural(
    _schema(
        {
            "metadata": _texts("name", "uid", "resourceVersion"),
            "spec": {"replicas": "integer"},
        }
    )
)
EVICTION = Structural(_schema({"deleteOptions": {}}))


def check(schema: Structural, value: Any, kind: str, version: str, path: str = "") -> None:
    """Refuse values of wrong types; null counts as missing.

    Raises:
        ApiStatusError: 400.
    """
    schema.default(value)
    errors = schema.validate(value, path)
    if errors:
        raise statuses.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: '
            + ", ".join(f"{error.path}: {error.message}" for error in errors)
        )
