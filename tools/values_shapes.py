"""JSON schemas of values whose default says nothing of what they may hold.

`# @schema {shape: NAME}` in the chart's `values.yaml` refers to one of them. They are written out at
every place that names them: Helm's messages about a reference are harder to read than those about the
thing itself.
"""

from collections.abc import Callable
from typing import Any

from pumice.controller.hypernodes.reading import DiscoveryFile
from pumice.plugins.settings import PluginSettings
from pumice.scheduler.config_file import SchedulerFile
from pumice.settings import json_schema
from pumice.webhook.resource_group_file import DOMAIN, KEYS, LABEL, LABELS, ResourceGroupsFile
from pumice.webhook.settings import AdmissionSettings

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 63,
    "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
}
KEY: Schema = {"type": "string", "pattern": f"^{KEYS}$"}
ANNOTATIONS: Schema = {**LABELS, "patternProperties": {f"^{KEYS}$": TEXT}}
OBJECT_NAME: Schema = {"type": "string", "maxLength": 253, "pattern": f"^{DOMAIN}$"}
AMOUNTS: Schema = {
    "type": "object",
    "additionalProperties": {
        "type": ["string", "number"],
        "pattern": r"^[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
        "minimum": 0,
    },
}


def _object(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    closed: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**closed, "required": list(required)} if required else closed


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _enum(*values: str) -> Schema:
    return {"enum": list(values)}


EXPRESSIONS = _array(
    _object(
        ("key", "operator"),
        key=KEY,
        operator=_enum("In", "NotIn", "Exists", "DoesNotExist"),
        values=_array(LABEL),
    )
)
SELECTOR = _object(matchLabels=LABELS, matchExpressions=EXPRESSIONS)


WHOLE: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
FREE: Schema = {"type": "object"}
OF_PODS_AND_CONTAINERS: Schema = {
    "runAsNonRoot": FLAG,
    "runAsUser": WHOLE,
    "runAsGroup": WHOLE,
    "seccompProfile": FREE,
    "appArmorProfile": FREE,
    "seLinuxOptions": FREE,
    "windowsOptions": FREE,
}
"""What the security contexts of pods and of containers both have."""


def settings() -> dict[str, Schema]:
    """Settings of admission by their name on the command line, each with its schema."""
    found: dict[str, Schema] = json_schema(AdmissionSettings)["properties"]
    del found["scheduler-names"]  # these follow from `schedulerName`
    return found


def _plugin_settings() -> Schema:
    """Settings of job plugins; their defaults are the code's, so that the chart passes only what is set."""
    properties = json_schema(PluginSettings)["properties"]
    for each in properties.values():
        each.pop("default", None)
    for name, shape in (
        ("wait-resources", "resources"),
        ("wait-security-context", "securityContext"),
    ):
        properties[name] |= SHAPES[shape]()
    return _object(**properties)


def _file(model: Any) -> Schema:
    """A configuration file, as text or as YAML; the schema checks only the latter."""
    return {**json_schema(model), "type": ["string", "object"]}


def _resource_groups() -> Schema:
    groups: Schema = json_schema(ResourceGroupsFile)["properties"]["resourceGroups"]
    return groups


SHAPES: dict[str, Callable[[], Schema]] = {
    "port": lambda: {"minimum": 1, "maximum": 65535},
    "name": lambda: {"maxLength": 253, "pattern": f"^({DOMAIN})?$"},
    "names": lambda: _array(OBJECT_NAME),
    "pluginNames": lambda: _array(KEY),
    "schedulerName": lambda: NAME,
    "schedulerNames": lambda: _array(NAME),
    "texts": lambda: TEXTS,
    "env": lambda: _array(
        _object(("name",), name={**TEXT, "minLength": 1}, value=TEXT, valueFrom=FREE)
    ),
    "podSecurityContext": lambda: _object(
        **OF_PODS_AND_CONTAINERS,
        fsGroup=WHOLE,
        fsGroupChangePolicy=_enum("Always", "OnRootMismatch"),
        supplementalGroups=_array(WHOLE),
        supplementalGroupsPolicy=_enum("Merge", "Strict"),
        seLinuxChangePolicy=_enum("MountOption", "Recursive"),
        sysctls=_array(_object(("name", "value"), name=TEXT, value=TEXT)),
    ),
    "securityContext": lambda: _object(
        **OF_PODS_AND_CONTAINERS,
        allowPrivilegeEscalation=FLAG,
        readOnlyRootFilesystem=FLAG,
        privileged=FLAG,
        procMount=TEXT,
        capabilities=_object(add=TEXTS, drop=TEXTS),
    ),
    "labels": lambda: LABELS,
    "annotations": lambda: ANNOTATIONS,
    "resourceGroups": _resource_groups,
    "schedulerFile": lambda: _file(SchedulerFile),
    "discoveryFile": lambda: _file(DiscoveryFile),
    "resources": lambda: _object(requests=AMOUNTS, limits=AMOUNTS),
    "tolerations": lambda: _array(
        _object(
            key=TEXT,
            operator=_enum("Exists", "Equal"),
            value=TEXT,
            effect=_enum("NoSchedule", "PreferNoSchedule", "NoExecute"),
            tolerationSeconds={"type": "integer"},
        )
    ),
    "affinity": lambda: _object(
        nodeAffinity={"type": "object"},
        podAffinity={"type": "object"},
        podAntiAffinity={"type": "object"},
    ),
    "selectorExpressions": lambda: EXPRESSIONS,
    "peers": lambda: _array(
        _object(
            podSelector=SELECTOR,
            namespaceSelector=SELECTOR,
            ipBlock=_object(("cidr",), cidr=TEXT, **{"except": TEXTS}),
        )
    ),
    "owners": lambda: _array(
        _object(
            ("apiGroups", "resources"),
            apiGroups={**_array(OBJECT_NAME), "minItems": 1},
            resources={**_array(NAME), "minItems": 1},
        )
    ),
    "admissionSettings": lambda: _object(**settings()),
    "pluginSettings": _plugin_settings,
}
"""The shapes by name; what is not given there comes from the default's own type."""
