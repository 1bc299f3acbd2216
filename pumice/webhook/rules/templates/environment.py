"""Environment variables: names, and where their values come from."""

from operator import itemgetter
from typing import Any

from pumice.api.names import (
    config_key_problem,
    dns_label_problem,
    dns_subdomain_problem,
    env_name_problem,
)
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import hidden_variables
from pumice.webhook.rules.templates.downward_api import ENV_FIELDS, field_ref, resource_field_ref
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import members, quoted, text, without_backsteps

__all__ = ["RULES", "environment", "environment_from"]

TPL_ENV = Rule(
    "TPL-ENV",
    "environment variables have a name of printable characters without `=`",
    "Kubernetes refuses the pod otherwise.",
    'env: [{name: "A=B", value: c}]',
)
TPL_ENV_VALUE = Rule(
    "TPL-ENV-VALUE",
    "valueFrom has exactly one source, one that can be read, and no value beside it",
    "Kubernetes refuses the pod otherwise.",
    "env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.containers}}}]",
)
TPL_ENV_FROM = Rule(
    "TPL-ENV-FROM",
    "envFrom names one ConfigMap or one Secret, and a prefix of printable characters without `=`",
    "Kubernetes refuses the pod otherwise.",
    "envFrom: [{configMapRef: {}}]",
)

RULES = (TPL_ENV, TPL_ENV_VALUE, TPL_ENV_FROM)

_NAMED = itemgetter("name")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FROM = ("configMapRef", "secretRef")


def environment(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `env`."""
    found = container["env"]
    names = _names(found)
    if names is None:
        for index, variable in entries(found):
            _name(site, variable.get("name"), f"env[{index}].name")
    else:
        if len(set(names)) != len(names):
            hidden_variables(site, found)
        if not [each for each in found if "valueFrom" in each]:
            return
    for index, variable in entries(found):
        source = variable.get("valueFrom")
        if isinstance(source, dict):
            _source(site, variable, source, pod, f"env[{index}].valueFrom")


def environment_from(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `envFrom`."""
    for index, source in entries(container["envFrom"]):
        field = f"envFrom[{index}]"
        prefix = source.get("prefix")
        if prefix and isinstance(prefix, str) and (problem := env_name_problem(prefix)):
            site.report(TPL_ENV_FROM, problem, f"{field}.prefix")
        for kind in members(site, TPL_ENV_FROM, source, _FROM, field):
            if isinstance(source[kind], dict):
                _object_name(site, TPL_ENV_FROM, source[kind], f"{field}.{kind}")


def _names(variables: Any) -> list[str] | None:
    """Names of variables if all are good: a single look, since there are many and few are bad."""
    try:
        names = list(map(_NAMED, variables))
        return names if all(names) and env_name_problem("".join(names)) is None else None
    except (KeyError, TypeError):
        return None


def _name(site: Site, name: object, field: str) -> None:
    name = text(site, TPL_ENV, name, field)
    if name and (problem := env_name_problem(name)):
        site.report(TPL_ENV, problem, field)


def _source(site: Site, variable: Raw, source: Raw, pod: Surroundings, field: str) -> None:
    found = members(site, TPL_ENV_VALUE, source, _SOURCES, field)
    if found and variable.get("value"):
        site.report(TPL_ENV_VALUE, "must not be set together with value", field)
    for kind in found:
        ref, where = source[kind], f"{field}.{kind}"
        if not isinstance(ref, dict):
            continue
        if kind == "fieldRef":
            field_ref(site, TPL_ENV_VALUE, ref, ENV_FIELDS, where)
        elif kind == "resourceFieldRef":
            resource_field_ref(site, TPL_ENV_VALUE, ref, where)
        elif kind == "fileKeyRef":
            _file_key(site, ref, pod, where)
        else:
            _object_name(site, TPL_ENV_VALUE, ref, where)
            key = text(site, TPL_ENV_VALUE, ref.get("key"), f"{where}.key")
            if key and (problem := config_key_problem(key)):
                site.report(TPL_ENV_VALUE, problem, f"{where}.key")


def _object_name(site: Site, rule: Rule, ref: Raw, field: str) -> None:
    """Check the name of a ConfigMap or a Secret."""
    name = text(site, rule, ref.get("name"), f"{field}.name")
    if name and (problem := dns_subdomain_problem(name)):
        site.report(rule, problem, f"{field}.name")


def _file_key(site: Site, ref: Raw, pod: Surroundings, field: str) -> None:
    """Check a variable that is read from a file, which an init container writes to an emptyDir."""
    key = text(site, TPL_ENV_VALUE, ref.get("key"), f"{field}.key")
    if key and (problem := env_name_problem(key)):
        site.report(TPL_ENV_VALUE, problem, f"{field}.key")
    path = text(site, TPL_ENV_VALUE, ref.get("path"), f"{field}.path")
    without_backsteps(site, TPL_ENV_VALUE, path, f"{field}.path")
    name = text(site, TPL_ENV_VALUE, ref.get("volumeName"), f"{field}.volumeName")
    if not name:
        return
    if problem := dns_label_problem(name):
        site.report(TPL_ENV_VALUE, problem, f"{field}.volumeName")
    elif (volume := pod.volumes.get(name)) is None:
        hint = site.case.did_you_mean(name, pod.volumes)
        site.report(
            TPL_ENV_VALUE, f"there is no volume {quoted(name)}{hint}", f"{field}.volumeName"
        )
    elif not _is_empty_dir(volume):
        message = f"must be a volume of type emptyDir, which {quoted(name)} is not"
        site.report(TPL_ENV_VALUE, message, f"{field}.volumeName")


def _is_empty_dir(volume: Raw) -> bool:
    """Whether a volume is an emptyDir, which it also is when it says nothing."""
    return volume.get("emptyDir") is not None or not any(
        value is not None for name, value in volume.items() if name != "name"
    )
