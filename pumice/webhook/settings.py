"""Settings of admission: what rules take for granted (`rules.terms`), and how strict each rule is.

Flags of `pumice webhook`, `--set NAME=VALUE` of the offline verbs and the chart's values all end here;
the settings page is generated from the descriptions.

Precedence of levels: the object's namespace > the whole cluster > `strict-upstream` > the rule's own. They are resolved
when settings are read, so a review pays one lookup for its namespace, and another for each problem that it finds.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cached_property
from typing import Any, get_args

from pumice.api.fields import did_you_mean
from pumice.api.json_words import either
from pumice.api.names import dns_label_problem
from pumice.plugins import words
from pumice.webhook.rules import catalogue
from pumice.webhook.rules.rule import Level
from pumice.webhook.rules.terms import Terms
from pumice.webhook.sections import section_of

__all__ = [
    "LEVELS",
    "LEVELS_BY",
    "AdmissionSettings",
    "Levels",
    "SettingError",
    "read_level",
    "upstream",
]

Levels = Mapping[str, Level]
"""Levels by code; what is not in it has the rule's own."""

LEVELS: tuple[Level, ...] = get_args(Level)

_DEFECT = re.compile(r"[A-Z]+-(?:MUTATE|VALIDATE)")
"""Codes under which an endpoint fails that crashes outside its rules."""

LEVELS_BY = {"rules": "rule.CODE", "namespaces": "namespace.NAME.rule.CODE"}
"""Settings that hold levels of rules, each with how one of them is set on the command line."""


class SettingError(ValueError):
    """A setting that does not exist or has no such value; the message is one clear line."""


@dataclass(frozen=True)
class AdmissionSettings(Terms):
    """How admission judges."""

    rules: dict[str, Level] = field(
        default_factory=dict,
        metadata={
            "description": "How strict a rule is: `enforce` refuses, `warn` admits and tells, `off` says nothing."
        },
    )
    namespaces: dict[str, dict[str, Level]] = field(
        default_factory=dict, metadata={"description": "The same for the objects of one namespace."}
    )

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SettingError: One of them is out of range, or is about a rule that there is not.
        """
        if not self.scheduler_names:
            raise SettingError("setting scheduler-names: expected at least one, found none")
        if not all(self.scheduler_names):
            raise SettingError('setting scheduler-names: expected names, found ""')
        for name, about in self.declared().items():
            least = about.metadata.get("minimum")
            if least is not None and (found := getattr(self, name)) < least:
                spelt = name.replace("_", "-")
                raise SettingError(f"setting {spelt}: expected at least {least}, found {found}")
        self.__dict__.update(
            rules=_read_levels(self.rules), namespaces=_read_namespaces(self.namespaces)
        )

    # These are resolved once, so that no review has to; a private attribute would cost it a microsecond.
    @cached_property
    def cluster_levels(self) -> Levels:
        """Levels of rules that do not have their own one."""
        return (upstream() if self.strict_upstream else {}) | self.rules

    @cached_property
    def namespace_levels(self) -> Mapping[str, Levels]:
        """The same by namespace, for those that have levels of their own."""
        return {name: {**self.cluster_levels, **own} for name, own in self.namespaces.items()}

    def levels(self, namespace: str) -> Levels:
        """The same for the objects of a namespace; its name is empty for objects that are in none."""
        return self.namespace_levels.get(namespace, self.cluster_levels)

    @classmethod
    def declared(cls) -> dict[str, Field[Any]]:
        """Every setting by its name in Python; its `metadata` has its description and limits."""
        return {each.name: each for each in fields(cls)}

    @classmethod
    def from_assignments(cls, assignments: Iterable[str]) -> "AdmissionSettings":
        """Read `NAME=VALUE` texts, names with dashes as on the command line.

        Lists are set by repeating the name; `scheduler-name` and `scheduler-names` mean the same. How
        strict a rule is, is set by `rule.CODE` and `namespace.NAME.rule.CODE`.

        Raises:
            SettingError: A text is no assignment, or its name or value is not known.
        """
        values: dict[str, Any] = {}
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise SettingError(f"{assignment!r} is no setting, expected NAME=VALUE")
            if name.startswith(("rule.", "namespace.")):
                _set_level(values, name.strip(), value.strip())
                continue
            spelt = _name_of(name.strip())
            if spelt == "scheduler_names":
                values[spelt] = (*values.get(spelt, ()), value.strip())
            else:
                values[spelt] = _read(name.strip(), value.strip(), cls.declared()[spelt].type)
        return cls(**values)


def _name_of(name: str) -> str:
    known = AdmissionSettings.declared()
    found = name.replace("-", "_")
    if found == "scheduler_name":
        return "scheduler_names"
    if found in LEVELS_BY:
        raise SettingError(f"{name} are set one by one, as {LEVELS_BY[found]}=LEVEL")
    if found not in known:
        spelt = [LEVELS_BY.get(each, each.replace("_", "-")) for each in known]
        hint = did_you_mean(name, spelt) or f", known are {', '.join(spelt)}"
        raise SettingError(f"there is no setting {name!r}{hint}")
    return found


def _read(name: str, value: str, kind: object) -> bool | int:
    """A value as people and Go's flags write it."""
    read = words.boolean(value) if kind is bool else words.integer(value)
    if read is None:
        expected = "true or false" if kind is bool else "a whole number"
        raise SettingError(f"setting {name}: expected {expected}, found {value!r}")
    return read


def _set_level(values: dict[str, Any], name: str, level: str) -> None:
    """Note the level of a rule: `rule.CODE` or `namespace.NAME.rule.CODE`."""
    levels = values.setdefault("rules", {})
    code = name.removeprefix("rule.")
    if name.startswith("namespace."):
        namespace, found, code = name.removeprefix("namespace.").partition(".rule.")
        if not found:
            raise SettingError(f"{name!r} is no setting, expected {LEVELS_BY['namespaces']}")
        levels = values.setdefault("namespaces", {}).setdefault(namespace, {})
    levels[code] = level


def upstream() -> dict[str, Level]:
    """What `strict-upstream` means: rules that are stricter than Volcano's only warn.

    Of rules that are stricter only in part, the caller says so: `Case.report(…, stricter=)`.
    """
    return dict.fromkeys((rule.code for rule in catalogue.ALL if rule.stricter), "warn")


def _read_levels(found: Any) -> dict[str, Level]:
    """Levels by code, as settings give them.

    Raises:
        SettingError: There is no such rule, its level cannot be set, or there is no such level.
    """
    if not isinstance(found, Mapping):
        raise SettingError(f"expected levels by the codes of rules, found {found!r}")
    return {_code(code): _level_of(code, level) for code, level in found.items()}


def _read_namespaces(found: Any) -> dict[str, dict[str, Level]]:
    """Parse the levels that settings give, by namespace and code.

    Raises:
        SettingError: As `_read_levels`, or a rule applies to cluster-scoped objects.
    """
    if not isinstance(found, Mapping):
        raise SettingError(f"expected levels by namespace, found {found!r}")
    read = {}
    for namespace, levels in found.items():
        if problem := dns_label_problem(str(namespace)):
            raise SettingError(f"the name of a namespace: {problem}")
        read[str(namespace)] = _read_levels(levels)
        for code in read[str(namespace)]:
            if not section_of(code).namespaced:
                raise SettingError(
                    f"rule {code!r} judges objects that are in no namespace; set it for the whole cluster"
                )
    return read


def read_level(found: Any) -> Level:
    """A level as it is written, `false` for what YAML made of `off`.

    Raises:
        SettingError: There is no such level.
    """
    word = str(found).lower()
    for level in LEVELS:
        if word == level:
            return level
    if word == "false":
        return "off"
    why = " (YAML reads on and yes as true)" if word == "true" else ""
    raise SettingError(f"expected {either(LEVELS)}, found {word!r}{why}")


def _level_of(code: str, found: Any) -> Level:
    try:
        return read_level(found)
    except SettingError as error:
        raise SettingError(f"rule {code}: {error}") from None


def _code(found: Any) -> str:
    code = str(found)
    if catalogue.by_code(code) is not None:
        return code
    if code.startswith("SCHEMA-"):
        raise SettingError(
            f"rule {code!r} cannot be set: the object does not decode, or the schema of its kind refuses it"
        )
    if _DEFECT.fullmatch(code):
        raise SettingError(f"rule {code!r} cannot be set: it reports a defect of Pumice")
    hint = (
        did_you_mean(code, (rule.code for rule in catalogue.ALL)) or "; `pumice rules` lists them"
    )
    raise SettingError(f"there is no rule {code!r}{hint}")
