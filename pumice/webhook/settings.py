"""Settings of admission, parsed and checked.

Flags of `pumice webhook`, `--set NAME=VALUE` of the offline verbs and the chart's values all end here;
the settings page and the chart's schema are generated from this model. It imports pydantic, so what admission uses
is the plain form of the settings (`rules.rule`).
"""

import re
from collections.abc import Iterable
from dataclasses import field, fields
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, ConfigDict, field_validator
from pydantic.dataclasses import dataclass

from pumice.api.fields import did_you_mean
from pumice.api.json_words import either, quoted
from pumice.api.meta import parse_bool
from pumice.api.names import dns_label_problem
from pumice.api.setting_errors import SettingError, assigned
from pumice.plugins import words
from pumice.settings import checked, read, refuse
from pumice.webhook.rules import catalogue
from pumice.webhook.rules.catalogue import section_of
from pumice.webhook.rules.rule import Level, RuleSettings

LEVELS: tuple[Level, ...] = get_args(Level)

_DEFECT = re.compile(r"[A-Z]+-(?:MUTATE|VALIDATE)")
"""Codes for errors of an endpoint outside its rules."""

LEVELS_BY = {"rules": "rule.CODE", "namespaces": "namespace.NAME.rule.CODE"}
"""Settings that hold levels of rules, each with how one of them is set on the command line."""


def read_level(found: Any) -> Level:
    """Parse a level; `false` is what YAML reads for `off`.

    Raises:
        ValueError: There is no such level.
    """
    word = str(found).lower()
    for level in LEVELS:
        if word == level:
            return level
    if word == "false":
        return "off"
    why = " (YAML reads on and yes as true)" if word == "true" else ""
    raise ValueError(f"must be {either(LEVELS)}, found {quoted(word)}{why}")


def _code_problem(code: str) -> str | None:
    if catalogue.by_code(code) is not None:
        return None
    if code.startswith("SCHEMA-"):
        return f"rule {quoted(code)} cannot be set: the object does not decode, or the schema of its kind refuses it"
    if _DEFECT.fullmatch(code):
        return f"rule {quoted(code)} cannot be set: it reports a defect of Pumice"
    known = (rule.code for rule in catalogue.ALL)
    return f"there is no rule {quoted(code)}{did_you_mean(code, known) or '; `pumice rules` lists them'}"


def _namespaced_problem(code: str) -> str | None:
    if section_of(code).namespaced:
        return None
    return (
        f"rule {quoted(code)} judges objects that are in no namespace; set it for the whole cluster"
    )


def _namespace_problem(name: str) -> str | None:
    return (problem := dns_label_problem(name)) and f"the name of a namespace: {problem}"


def _levels_schema(schema: dict[str, Any], *, namespaced: bool = False) -> None:
    codes = [
        each.code for each in catalogue.ALL if not namespaced or section_of(each.code).namespaced
    ]
    # One pattern for all codes: a list of them would make each message about a misspelt one endless.
    patterns = {f"^({'|'.join(sorted(codes))})$": {"enum": [*LEVELS, False]}}
    schema |= {"additionalProperties": False, "patternProperties": patterns}


def _namespaces_schema(schema: dict[str, Any]) -> None:
    levels = {"type": "object"}
    _levels_schema(levels, namespaced=True)
    # Helm gives the wrong place for what `propertyNames` refuses.
    patterns = {"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$": levels}
    schema |= {"additionalProperties": False, "patternProperties": patterns}


_Level = Annotated[Level, BeforeValidator(read_level)]
_Code = Annotated[str, checked(_code_problem)]
_Namespaced = Annotated[_Code, checked(_namespaced_problem)]
_Namespace = Annotated[str, checked(_namespace_problem)]


@dataclass(
    frozen=True,
    config=ConfigDict(
        extra="forbid", alias_generator=lambda name: name.replace("_", "-"), validate_by_name=True
    ),
)
class AdmissionSettings(RuleSettings):
    """How admission judges."""

    rules: dict[_Code, _Level] = field(
        default_factory=dict,
        metadata={
            "description": "How strict a rule is: `enforce` refuses, `warn` admits and tells, `off` says nothing.",
            "json_schema_extra": _levels_schema,
        },
    )
    namespaces: dict[_Namespace, dict[_Namespaced, _Level]] = field(
        default_factory=dict,
        metadata={
            "description": "The same for the objects of one namespace.",
            "json_schema_extra": _namespaces_schema,
        },
    )

    @field_validator("scheduler_names")
    @classmethod
    def _are_names(cls, found: tuple[str, ...]) -> tuple[str, ...]:
        refuse(
            ((at,), "must be a name, found an empty string")
            for at, each in enumerate(found)
            if not each
        )
        return found

    def plain(self) -> RuleSettings:
        """The same without a model: it can be used where pydantic is not imported."""
        return RuleSettings(**{each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def from_assignments(cls, assignments: Iterable[str]) -> "AdmissionSettings":
        """Read `NAME=VALUE` texts, names with dashes as on the command line.

        Lists are set by repeating the name; `scheduler-name` and `scheduler-names` mean the same. Levels of rules are
        set by `rule.CODE` and `namespace.NAME.rule.CODE`.

        Raises:
            SettingError: A text is not an assignment, or its name or value is invalid.
        """
        values: dict[str, Any] = {}
        for name, value in map(assigned, assignments):
            _add(values, name, value)
        found: AdmissionSettings = read(cls, values)
        return found


def _add(values: dict[str, Any], name: str, value: str) -> None:
    """Add an assignment to the input of pydantic."""
    if name in ("rule", "rules", "namespace", "namespaces"):
        spelt = LEVELS_BY[name.removesuffix("s") + "s"]
        raise SettingError.of(f"{name} are set one by one, as {spelt}=LEVEL")
    if name.startswith("rule."):
        values.setdefault("rules", {})[name.removeprefix("rule.")] = value
    elif name.startswith("namespace."):
        namespace, found, code = name.removeprefix("namespace.").partition(".rule.")
        if not found:
            raise SettingError.of(
                f"{quoted(name)} is no setting, expected {LEVELS_BY['namespaces']}"
            )
        values.setdefault("namespaces", {}).setdefault(namespace, {})[code] = value
    elif name in ("scheduler-name", "scheduler-names"):
        values["scheduler-names"] = (*values.get("scheduler-names", ()), value)
    else:
        values[name] = _as_flag(name, value)


def _as_flag(name: str, value: str) -> bool | int | str:
    """A value in the spelling of people and of Go's flags; the text if it is not one."""
    declared = RuleSettings.declared().get(name.replace("-", "_"))
    kind = declared.type if declared is not None else str
    found = parse_bool(value) if kind is bool else words.integer(value) if kind is int else None
    return value if found is None else found
