"""Levels: how strict each rule is, as settings say it.

The nearest word counts: that of the object's namespace, that of the whole cluster, `strict-upstream`,
and last the rule's own. Settings are resolved when they are read, so a review pays one look into a
dict for a namespace, and another for each problem that it finds.
"""

import re
from collections.abc import Mapping
from typing import Any, get_args

from pumice.api.fields import did_you_mean
from pumice.api.json_words import either
from pumice.api.names import dns_label_problem
from pumice.webhook.rules import catalogue
from pumice.webhook.rules.rule import Level
from pumice.webhook.sections import section_of

__all__ = ["LEVELS", "Levels", "read_level", "read_levels", "read_namespaces", "upstream"]

Levels = Mapping[str, Level]
"""Levels by code; what is not in it has the rule's own."""

LEVELS: tuple[Level, ...] = get_args(Level)

_DEFECT = re.compile(r"[A-Z]+-(?:MUTATE|VALIDATE)")
"""Codes under which an endpoint fails that crashes outside its rules."""


def upstream() -> dict[str, Level]:
    """What `strict-upstream` means: rules that are stricter than Volcano's only warn.

    Of rules that are stricter only in part, whoever finds something says so: `Case.report(…, stricter=)`.
    """
    return dict.fromkeys((rule.code for rule in catalogue.ALL if rule.stricter), "warn")


def read_levels(found: Any) -> dict[str, Level]:
    """Levels by code, as settings give them.

    Raises:
        ValueError: There is no such rule, its level cannot be set, or there is no such level.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"expected levels by the codes of rules, found {found!r}")
    return {_code(code): _level_of(code, level) for code, level in found.items()}


def read_namespaces(found: Any) -> dict[str, dict[str, Level]]:
    """Levels by namespace and code, as settings give them.

    Raises:
        ValueError: As of `read_levels`, or a rule is about objects that are in no namespace.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"expected levels by namespace, found {found!r}")
    read = {}
    for namespace, levels in found.items():
        if problem := dns_label_problem(str(namespace)):
            raise ValueError(f"the name of a namespace {problem}")
        read[str(namespace)] = read_levels(levels)
        for code in read[str(namespace)]:
            if not section_of(code).namespaced:
                raise ValueError(
                    f"rule {code!r} judges objects that are in no namespace; set it for the whole cluster"
                )
    return read


def read_level(found: Any) -> Level:
    """A level as it is written, `false` for what YAML made of `off`.

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
    raise ValueError(f"expected {either(LEVELS)}, found {word!r}{why}")


def _level_of(code: str, found: Any) -> Level:
    try:
        return read_level(found)
    except ValueError as error:
        raise ValueError(f"rule {code}: {error}") from None


def _code(found: Any) -> str:
    code = str(found)
    if catalogue.by_code(code) is not None:
        return code
    if code.startswith("SCHEMA-"):
        raise ValueError(
            f"rule {code!r} cannot be set: the object does not decode, or the schema of its kind refuses it"
        )
    if _DEFECT.fullmatch(code):
        raise ValueError(f"rule {code!r} cannot be set: it stands for a defect of Pumice")
    hint = (
        did_you_mean(code, (rule.code for rule in catalogue.ALL)) or "; `pumice rules` lists them"
    )
    raise ValueError(f"there is no rule {code!r}{hint}")
