"""Reads the Protocol Buffers that kubectl sends for the objects it makes itself.

`kubectl create namespace`, `create configmap`, `drain` and their like use typed clients, which write
Protocol Buffers and take JSON for an answer. So a few kinds are enough; all else gets 415, which says how to send it as JSON. Field
numbers: the `.proto` files of the Kubernetes API, generated with its types.
"""

import base64
from collections.abc import Iterator
from typing import Any

from pumice.embedded import statuses

Json = Any
_MAGIC = b"k8s\x00"

# A message is a map from field number to (JSON name, type). Types: `s` text, `b` bytes as base64,
# `i` integer, `t` boolean, a message's name, `[]` before any for a list, `{}` for a map from text.
MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "IntOrString": {1: ("type", "i"), 2: ("intVal", "i"), 3: ("strVal", "s")},
    "Quantity": {1: ("string", "s")},
    "ObjectMeta": {
        1: ("name", "s"),
        2: ("generateName", "s"),
        3: ("namespace", "s"),
        5: ("uid", "s"),
        6: ("resourceVersion", "s"),
        11: ("labels", "{}s"),
        12: ("annotations", "{}s"),
        13: ("ownerReferences", "[]OwnerReference"),
        14: ("finalizers", "[]s"),
    },
    "OwnerReference": {
        1: ("kind", "s"),
        3: ("name", "s"),
        4: ("uid", "s"),
        5: ("apiVersion", "s"),
        6: ("controller", "t"),
        7: ("blockOwnerDeletion", "t"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec")},
    "NamespaceSpec": {1: ("finalizers", "[]s")},
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}s"),
        3: ("binaryData", "{}b"),
        4: ("immutable", "t"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}b"),
        3: ("type", "s"),
        4: ("stringData", "{}s"),
        5: ("immutable", "t"),
    },
    "ServiceAccount": {1: ("metadata", "ObjectMeta"), 4: ("automountServiceAccountToken", "t")},
    "Service": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ServiceSpec")},
    "ServiceSpec": {
        1: ("ports", "[]ServicePort"),
        2: ("selector", "{}s"),
        3: ("clusterIP", "s"),
        4: ("type", "s"),
        5: ("externalIPs", "[]s"),
        7: ("sessionAffinity", "s"),
        10: ("externalName", "s"),
    },
    "ServicePort": {
        1: ("name", "s"),
        2: ("protocol", "s"),
        3: ("port", "i"),
        4: ("targetPort", "IntOrString"),
        5: ("nodePort", "i"),
    },
    "ResourceQuota": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ResourceQuotaSpec")},
    "ResourceQuotaSpec": {1: ("hard", "{}Quantity"), 2: ("scopes", "[]s")},
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"),
        2: ("value", "i"),
        3: ("globalDefault", "t"),
        4: ("description", "s"),
        5: ("preemptionPolicy", "s"),
    },
    "Role": {1: ("metadata", "ObjectMeta"), 2: ("rules", "[]PolicyRule")},
    "RoleBinding": {
        1: ("metadata", "ObjectMeta"),
        2: ("subjects", "[]Subject"),
        3: ("roleRef", "RoleRef"),
    },
    "PolicyRule": {
        1: ("verbs", "[]s"),
        2: ("apiGroups", "[]s"),
        3: ("resources", "[]s"),
        4: ("resourceNames", "[]s"),
        5: ("nonResourceURLs", "[]s"),
    },
    "Subject": {
        1: ("kind", "s"),
        2: ("apiGroup", "s"),
        3: ("name", "s"),
        4: ("namespace", "s"),
    },
    "RoleRef": {1: ("apiGroup", "s"), 2: ("kind", "s"), 3: ("name", "s")},
    "Binding": {1: ("metadata", "ObjectMeta"), 2: ("target", "ObjectReference")},
    "ObjectReference": {
        1: ("kind", "s"),
        2: ("namespace", "s"),
        3: ("name", "s"),
        4: ("uid", "s"),
        5: ("apiVersion", "s"),
    },
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "i"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "t"),
        4: ("propagationPolicy", "s"),
        5: ("dryRun", "[]s"),
    },
    "Preconditions": {1: ("uid", "s"), 2: ("resourceVersion", "s")},
    "Deployment": {1: ("metadata", "ObjectMeta"), 2: ("spec", "DeploymentSpec")},
    "DeploymentSpec": {
        1: ("replicas", "i"),
        2: ("selector", "LabelSelector"),
        3: ("template", "PodTemplateSpec"),
        4: ("strategy", "DeploymentStrategy"),
    },
    "DeploymentStrategy": {1: ("type", "s")},
    "Job": {1: ("metadata", "ObjectMeta"), 2: ("spec", "JobSpec")},
    "JobSpec": {
        1: ("parallelism", "i"),
        2: ("completions", "i"),
        3: ("activeDeadlineSeconds", "i"),
        6: ("template", "PodTemplateSpec"),
        7: ("backoffLimit", "i"),
        8: ("ttlSecondsAfterFinished", "i"),
        9: ("completionMode", "s"),
        10: ("suspend", "t"),
    },
    "LabelSelector": {1: ("matchLabels", "{}s")},
    "PodTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "PodSpec": {
        2: ("containers", "[]Container"),
        3: ("restartPolicy", "s"),
        4: ("terminationGracePeriodSeconds", "i"),
        6: ("dnsPolicy", "s"),
        7: ("nodeSelector", "{}s"),
        8: ("serviceAccountName", "s"),
        9: ("serviceAccount", "s"),
        19: ("schedulerName", "s"),
        20: ("initContainers", "[]Container"),
        24: ("priorityClassName", "s"),
    },
    "Container": {
        1: ("name", "s"),
        2: ("image", "s"),
        3: ("command", "[]s"),
        4: ("args", "[]s"),
        5: ("workingDir", "s"),
        6: ("ports", "[]ContainerPort"),
        7: ("env", "[]EnvVar"),
        8: ("resources", "ResourceRequirements"),
        13: ("terminationMessagePath", "s"),
        14: ("imagePullPolicy", "s"),
        20: ("terminationMessagePolicy", "s"),
    },
    "ContainerPort": {1: ("name", "s"), 3: ("containerPort", "i"), 4: ("protocol", "s")},
    "EnvVar": {1: ("name", "s"), 2: ("value", "s")},
    "ResourceRequirements": {1: ("limits", "{}Quantity"), 2: ("requests", "{}Quantity")},
    "TypeMeta": {1: ("apiVersion", "s"), 2: ("kind", "s")},
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "b")},
}
MESSAGES["ClusterRole"] = MESSAGES["Role"]
MESSAGES["ClusterRoleBinding"] = MESSAGES["RoleBinding"]

_WHOLE = frozenset(
    {
        "Container",
        "ContainerPort",
        "DeploymentSpec",
        "DeploymentStrategy",
        "EnvVar",
        "JobSpec",
        "LabelSelector",
        "PodSpec",
        "ResourceRequirements",
    }
)
"""Messages of which not every field is read: one that has such a field is not read at all, so that nothing is lost silently."""

KINDS = frozenset(
    {
        "Binding",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "DeleteOptions",
        "Deployment",
        "Eviction",
        "Job",
        "Namespace",
        "PriorityClass",
        "ResourceQuota",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
    }
)
"""Kinds that are read."""


class _UnlistedFieldError(Exception):
    """A message has a field that is not read here."""


def decode(body: bytes) -> dict[str, Json]:
    """Read an object.

    Raises:
        ApiStatusError: 400 for what is no object, 415 for a kind that is read as JSON only.
    """
    if not body.startswith(_MAGIC):
        raise statuses.bad_request("the body is no Kubernetes Protocol Buffers object")
    try:
        envelope = _message(body[len(_MAGIC) :], "Unknown")
        meta: dict[str, Json] = envelope["typeMeta"]
        kind = meta["kind"]
        if kind not in KINDS:
            raise statuses.json_only(kind)
        return meta | _message(base64.b64decode(envelope.get("raw", "")), kind)
    except _UnlistedFieldError:
        raise statuses.json_only(kind) from None
    except (IndexError, KeyError, UnicodeDecodeError, ValueError) as error:
        raise statuses.bad_request(f"error decoding Protocol Buffers: {error}") from error


def _message(data: bytes, name: str) -> dict[str, Json]:
    fields = MESSAGES[name]
    result: dict[str, Json] = {}
    for number, value in _fields(data):
        if number not in fields:
            if value and name in _WHOLE:  # Go writes empty values out, too
                raise _UnlistedFieldError
            continue
        field, type_ = fields[number]
        if type_.startswith("[]"):
            result.setdefault(field, []).append(_value(value, type_[2:]))
        elif type_.startswith("{}"):
            key, item = _entry(value, type_[2:])
            result.setdefault(field, {})[key] = item
        else:
            decoded = _value(value, type_)
            # Go writes empty texts out; JSON leaves them out.
            if decoded != "":
                result[field] = decoded
    return result


def _entry(data: Any, type_: str) -> tuple[str, Json]:
    parts = dict(_fields(data))
    return _value(parts.get(1, b""), "s"), _value(parts.get(2, b""), type_)


def _value(value: Any, type_: str) -> Json:
    match type_:
        case "s":
            return value.decode()
        case "b":
            return base64.b64encode(value).decode()
        case "i":
            return value - (1 << 64) if value >> 63 else value
        case "t":
            return bool(value)
        case "Quantity":
            return _message(value, type_).get("string", "0")
        case "IntOrString":
            parts = _message(value, type_)
            return parts.get("strVal", "") if parts.get("type") else parts.get("intVal", 0)
        case _:
            return _message(value, type_)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and raw values of a message; what has an unknown wire type ends it."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise ValueError("a field is longer than its message")
            yield number, data[position : position + length]
            position += length
        elif wire in {1, 5}:
            position += 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} is not used by Kubernetes")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, position
        shift += 7
