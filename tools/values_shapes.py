"""JSON schemas of values whose default says nothing of what they may hold.

`# @schema {shape: NAME}` in the chart's `values.yaml` refers to one of them. They are written out at
every place that names them: Helm's messages about a reference are harder to read than those about the
thing itself.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pumice.plugins.settings import DESCRIPTIONS, PluginSettings
from pumice.webhook.rules.catalogue import ALL
from pumice.webhook.rules.rule import Rule
from pumice.webhook.sections import section_of
from pumice.webhook.settings import LEVELS, AdmissionSettings

__all__ = ["SHAPES", "Schema", "settings"]

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 63,
    "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
}
_WORD = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_KEY = f"({_DOMAIN}/)?{_WORD}"
KEY: Schema = {"type": "string", "pattern": f"^{_KEY}$"}
LABEL: Schema = {"type": "string", "pattern": f"^({_WORD})?$"}
LABELS: Schema = {
    "type": "object",
    "additionalProperties": False,
    "patternProperties": {f"^{_KEY}$": LABEL},
}
ANNOTATIONS: Schema = {**LABELS, "patternProperties": {f"^{_KEY}$": TEXT}}
OBJECT_NAME: Schema = {"type": "string", "maxLength": 253, "pattern": f"^{_DOMAIN}$"}
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


def _resource_group() -> Schema:
    """A group as Volcano's admission configuration has it, in Volcano's or Kubernetes' spelling."""
    scalar: Schema = {"type": ["string", "number", "boolean"]}
    seconds: Schema = {"type": "integer"}
    toleration = _object(
        key=TEXT,
        operator=_enum("Exists", "Equal", ""),
        value=scalar,
        effect=_enum("NoSchedule", "PreferNoSchedule", "NoExecute", ""),
        tolerationSeconds=seconds,
        tolerationseconds=seconds,
    )
    return _object(
        resourceGroup=TEXT,
        object=_claim(),
        schedulerName={**NAME, "minLength": 0, "pattern": f"^({_DOMAIN})?$"},
        tolerations=_array(toleration),
        labels=LABELS,
        affinity={"type": ["object", "string"]},
    )


def _claim() -> Schema:
    """Which pods belong to a group: those of namespaces, or those with one of the annotations."""
    namespace: Schema = {
        "type": "string",
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    }
    # A text is YAML itself: a line such as `key: value`, or a map in braces.
    written = rf"""^\s*(\{{|["']?{_KEY}["']?\s*:(\s|$))"""
    annotation: Schema = {
        "type": ["string", "object"],
        "pattern": written,
        "additionalProperties": False,
        "patternProperties": {f"^{_KEY}$": {"type": ["string", "number", "boolean"]}},
    }
    return {
        **_object(key=_enum("namespace", "annotation", ""), value={"type": "array"}),
        "if": {"properties": {"key": {"const": "namespace"}}, "required": ["key"]},
        "then": {"properties": {"value": {"items": namespace}}},
        "else": {"properties": {"value": {"items": annotation}}},
    }


def _levels(rules: Iterable[Rule]) -> Schema:
    """Levels by code; YAML reads `off` as false."""
    # One pattern for all codes: a list of them would make each message about a misspelt one endless.
    codes = "|".join(sorted(rule.code for rule in rules))
    return {
        "type": "object",
        "additionalProperties": False,
        "patternProperties": {f"^({codes})$": {"enum": [*LEVELS, False]}},
    }


def _levels_in_namespaces() -> Schema:
    namespaced = [rule for rule in ALL if section_of(rule.code).namespaced]
    # Helm gives the wrong place for what `propertyNames` refuses.
    return {
        "type": "object",
        "additionalProperties": False,
        "patternProperties": {"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$": _levels(namespaced)},
    }


def settings() -> Iterator[tuple[str, Schema]]:
    """Settings of admission by their name on the command line, each with its schema."""
    defaults = AdmissionSettings()
    for name, setting in AdmissionSettings.declared().items():
        if name != "scheduler_names":  # these follow from `schedulerName`
            default = getattr(defaults, name)
            schema = {"default": default, **setting.metadata, "type": _JSON_TYPES[type(default)]}
            yield name.replace("_", "-"), schema


def _admission_settings() -> Schema:
    shapes = {"rules": _levels(ALL), "namespaces": _levels_in_namespaces()}
    return _object(**{name: _shaped(field, shapes.get(name)) for name, field in settings()})


def _plugin_settings() -> Schema:
    defaults = PluginSettings().as_defaults()
    return _object(
        **{
            name: {"description": text, "type": _JSON_TYPES[type(defaults[name])]}
            for name, text in DESCRIPTIONS.items()
        }
    )


_JSON_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    dict: "object",
}


def _shaped(field: Schema, shape: Schema | None) -> Schema:
    if shape is None:
        return field
    return {"description": field["description"], **shape, "default": field["default"]}


SHAPES: dict[str, Callable[[], Schema]] = {
    "port": lambda: {"minimum": 1, "maximum": 65535},
    "name": lambda: {"maxLength": 253, "pattern": f"^({_DOMAIN})?$"},
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
    "resourceGroups": lambda: _array(_resource_group()),
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
    "admissionSettings": _admission_settings,
    "pluginSettings": _plugin_settings,
}
"""The shapes by name; what is not given there comes from the default's own type."""
