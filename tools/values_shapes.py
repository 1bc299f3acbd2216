"""JSON schemas of values whose default says nothing of what they may hold.

`# @schema {shape: NAME}` in the chart's `values.yaml` refers to one of them. They are written out at
every place that names them: Helm's messages about a reference are harder to read than those about the
thing itself.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pumice.plugins.settings import DESCRIPTIONS, PluginSettings
from pumice.webhook.levels import LEVELS
from pumice.webhook.rules.catalogue import ALL
from pumice.webhook.rules.rule import Rule
from pumice.webhook.sections import section_of
from pumice.webhook.settings import AdmissionSettings

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
LABELS: Schema = {"type": "object", "additionalProperties": TEXT}
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
        key={"type": "string", "minLength": 1},
        operator=_enum("In", "NotIn", "Exists", "DoesNotExist"),
        values=TEXTS,
    )
)
SELECTOR = _object(matchLabels=LABELS, matchExpressions=EXPRESSIONS)


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
    "names": lambda: _array({"type": "string", "minLength": 1}),
    "schedulerName": lambda: NAME,
    "schedulerNames": lambda: _array(NAME),
    "labels": lambda: LABELS,
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
    "admissionSettings": _admission_settings,
    "pluginSettings": _plugin_settings,
}
"""The shapes by name; what is not given there comes from the default's own type."""
