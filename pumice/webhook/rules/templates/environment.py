"""Environment variables: names, and where their values come from; fields of the pod in files, too."""

import re
from collections.abc import Collection

from pumice.api import names
from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.api.quantities import MILLI, is_whole_milli, parse_milli
from pumice.webhook.rules.templates.shapes import TPL_DOUBTFUL, FieldRule, refused
from pumice.webhook.rules.templates.table import Check, Row, Site, compiled

TPL_ENV = refused(
    "TPL-ENV",
    "environment variables have a name of printable characters without `=`",
    'env: [{name: "A=B", value: c}]',
)
TPL_ENV_VALUE = refused(
    "TPL-ENV-VALUE",
    "valueFrom has exactly one source, one that can be read, and no value beside it",
    "env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.containers}}}]",
)
TPL_ENV_FROM = refused(
    "TPL-ENV-FROM",
    "envFrom names one ConfigMap or one Secret, and a prefix of printable characters without `=`",
    "envFrom: [{configMapRef: {}}]",
)

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
"""Fields that an environment variable may refer to, besides single labels and annotations."""
_ALIASES = {"spec.host": "spec.nodeName"}
_SUBSCRIPT = re.compile(r"(?P<map>[^\[]+)\['(?P<key>.*)'\]", re.DOTALL)
_MAPS = ("metadata.annotations", "metadata.labels")
_RESOURCES = tuple(
    f"{which}.{name}"
    for which in ("limits", "requests")
    for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_DECIMAL = frozenset(MILLI * 10**exponent for exponent in range(0, 19, 3))
_BINARY = frozenset(MILLI * 2**exponent for exponent in range(0, 61, 10))
_USUAL = re.compile(r"([1-9][0-9]*|[0-9]*\.[0-9]+)([numkMGTPE]|[KMGTPE]i)?")


def _variables(site: Site, variables: list[Raw], field: str, _: Raw) -> None:
    """Check the names of variables, and duplicates: a later one hides an earlier one, unless its value contains it."""
    called = [each.get("name", "") for each in variables]
    # A name is invalid because of a character at any position, so all are checked together.
    if "" in called or (called and names.env_name_problem("".join(called))):
        for index, variable in enumerate(variables):
            _name(site, variable.get("name", ""), f"{field}[{index}].name", variable)
        return
    if len({*called}) == len(called):
        return
    seen: dict[str, int] = {}
    for index, variable in enumerate(variables):
        name, value = variable["name"], variable.get("value") or ""
        first, held = seen.setdefault(name, index), f"$({name})"
        if first == index:
            continue
        if "valueFrom" in variable or value == held or held not in str(value):
            message = f"{quoted(name)} is already the name of env[{first}], which it hides"
            site.report(TPL_DOUBTFUL, message, f"{field}[{index}]")


def _file_volume_problem(site: Site, found: str, _: Raw) -> str | None:
    """Check the volume of a variable that is read from a file; an init container writes the file to an emptyDir."""
    volumes = site.pod.volumes
    if not found or (problem := names.dns_label_problem(found)):
        return found and problem
    if (volume := volumes.get(found)) is None:
        return f"there is no volume {quoted(found)}{site.case.did_you_mean(found, volumes)}"
    # A volume without a source is an emptyDir, too.
    if "emptyDir" in volume or all(each == "name" for each in volume):
        return None
    return f"must be a volume of type emptyDir, which {quoted(found)} is not"


def field_ref(rule: FieldRule, allowed: Collection[str]) -> Check:
    """The shape of a reference to a field of the pod, from the allowed fields."""

    def problem(site: Site, found: str, _: Raw) -> str | None:
        if not found or _ALIASES.get(found, found) in allowed:
            return None
        match = _SUBSCRIPT.fullmatch(found)
        if match and match["map"] in _MAPS:
            # Kubernetes compares keys of annotations in lower case, here and nowhere else.
            key = match["key"].lower() if match["map"] == "metadata.annotations" else match["key"]
            return names.qualified_name_problem(key)
        hint = site.case.did_you_mean(found, allowed)
        return f"error converting fieldPath: {quoted(found)} is not a field that containers can read{hint}"

    return compiled(
        Row("apiVersion", rule.matching('must be "v1"', lambda found: found == "v1", empty=True)),
        Row("fieldPath", rule.required(), ""),
        Row("fieldPath", rule.judged(problem)),
    )


def resource_field_ref(rule: FieldRule) -> Check:
    """The shape of a reference to a request or limit of a container."""

    def resource(site: Site, found: str, field: str, ref: Raw) -> None:
        if found in _RESOURCES or found.startswith(_HUGE_PAGES):
            _divisor(site, rule, ref, f"{field.removesuffix('resource')}divisor")
        elif found:
            hint = site.case.did_you_mean(found, _RESOURCES)
            hint = hint or f", known are {', '.join(_RESOURCES)}"
            site.report(rule, f"there is no {quoted(found)}{hint}", field)

    return compiled(Row("resource", rule.required(), ""), Row("resource", resource))


def _divisor(site: Site, rule: FieldRule, ref: Raw, field: str) -> None:
    written = str(ref.get("divisor", 0))
    milli = parse_milli(written)
    if ref["resource"].endswith(".cpu"):
        good, wanted = milli in (1, MILLI), "1m and 1"
    else:
        known = _BINARY if written.endswith("i") else _DECIMAL
        good, wanted = milli in known, "1 and 1 with a suffix such as k, M, Ki or Mi"
    # Kubernetes compares texts: it reads 1000m and 1.0 as 1, but not +1, 01 and 1e0.
    if milli and not (good and _USUAL.fullmatch(written) and is_whole_milli(written)):
        message = f"only divisor's values {wanted} are supported, found {written}"
        site.report(rule, message, field)


_name = TPL_ENV.required(names.env_name_problem)
_NO_SOURCE = "must specify one of: "
_SEVERAL = "may not have more than one field specified at a time"
_KEY_REFS = "configMapKeyRef|secretKeyRef"
_VALUE_FROM = compiled(
    Row("", TPL_ENV_VALUE.exactly_one(_SOURCES, _NO_SOURCE, _SEVERAL)),
    Row("", TPL_ENV_VALUE.excludes("value", "may not be specified when `value` is not empty")),
    Row("fieldRef", field_ref(TPL_ENV_VALUE, _FIELDS)),
    Row("resourceFieldRef", resource_field_ref(TPL_ENV_VALUE)),
    Row(f"{_KEY_REFS}.name", TPL_ENV_VALUE.required(names.dns_subdomain_problem), ""),
    Row(f"{_KEY_REFS}.key", TPL_ENV_VALUE.required(names.config_key_problem), ""),
    Row("fileKeyRef.key", TPL_ENV_VALUE.required(names.env_name_problem), ""),
    Row("fileKeyRef.path|volumeName", TPL_ENV_VALUE.required(), ""),
    Row("fileKeyRef.path", TPL_ENV_VALUE.without_backsteps()),
    Row("fileKeyRef.volumeName", TPL_ENV_VALUE.judged(_file_volume_problem)),
)


def _sources(site: Site, variables: list[Raw], field: str, _: Raw) -> None:
    """Check where variables without a value have theirs from; most variables have a value."""
    for index, each in enumerate(variables):
        if "valueFrom" in each:
            _VALUE_FROM(site, each["valueFrom"], f"{field}[{index}].valueFrom", each)


ROWS = (
    Row("env", _variables),
    Row("env", _sources),
    Row("envFrom[]", TPL_ENV_FROM.exactly_one(("configMapRef", "secretRef"), _NO_SOURCE, _SEVERAL)),
    Row("envFrom[].prefix", TPL_ENV_FROM.valid(names.env_name_problem, empty=True)),
    Row(
        "envFrom[].configMapRef|secretRef.name",
        TPL_ENV_FROM.required(names.dns_subdomain_problem),
        "",
    ),
)
"""Fields of a container."""
