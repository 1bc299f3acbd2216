"""Volcano's file of `--admission-conf`: which pods belong to a resource group, and what they get from it.

A group claims pods by namespace or annotation, and gives them labels of nodes, an affinity, tolerations and a
scheduler. The models have Volcano's and Kubernetes' spelling: if a string is expected, `1` and `yes` are read as strings,
as in Volcano. Fields that pods get are checked by the rules of pod templates, so a group has only values that are valid
in a template.

`rules/resource_groups` finds the group of a pod, and `rules/pods` gives it what its group has. The webhook's
server follows the file (`server/worker`).
"""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from pumice.api import keys
from pumice.api.documents import written
from pumice.api.json_words import quoted
from pumice.api.names import dns_label_problem, dns_subdomain_problem, qualified_name_problem
from pumice.api.scalars import ScalarError
from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.api.yaml_values import DocumentError, value_of
from pumice.plugins import builtin
from pumice.settings import FilePart, checked, document, is_null, read_leniently, refuse
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.labels import label_problems
from pumice.webhook.rules.resource_groups import ResourceGroup, ResourceGroups
from pumice.webhook.rules.rule import RuleSettings
from pumice.webhook.rules.templates import types
from pumice.webhook.rules.templates.scheduling import SCHEDULING
from pumice.webhook.rules.templates.table import Site
from pumice.webhook.view import Snapshot

DOMAIN = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_WORD = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEYS = f"({DOMAIN}/)?{_WORD}"
"""Pattern of the keys of labels and annotations."""
LABEL = {"type": "string", "pattern": f"^({_WORD})?$"}
LABELS = {
    "type": "object",
    "additionalProperties": False,
    "patternProperties": {f"^{KEYS}$": LABEL},
}
_SCALAR = {"type": ["string", "number", "boolean"]}

Found = list[tuple[tuple[str | int, ...], str]]
"""Path and problem."""


def _as_json(found: Any) -> Any:
    """A validator that converts a value to JSON values."""
    try:
        return value_of(found)
    except ScalarError as error:
        refuse([((), str(error))])
    except RecursionError:
        refuse([((), "is nested too deeply")])


def _as_affinity(found: Any) -> Any:
    """A validator that accepts an object, or a string with JSON (as in Volcano) or YAML; None if it is empty."""
    read = _as_json(found)
    if isinstance(read, str):
        read = _written(read)
    if read is not None and not isinstance(read, dict):
        refuse([((), "must be an affinity: nodeAffinity, podAffinity, podAntiAffinity")])
    return read or None


def _written(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        mapping, _ = _mapping_in(text)
        refuse([((), f"must be JSON text or an object: {error}")] if mapping is None else [])
        return _as_json(mapping)


def _mapping_in(text: str) -> tuple[Any, str]:
    """The mapping in a YAML text; None if it has another value, or cannot be read, with the reason."""
    try:
        documents = written(text.encode())
    except DocumentError as error:
        return None, f": {error}"
    is_one = len(documents) == 1 and isinstance(documents[0], dict)
    return (documents[0] if is_one else None), ""


def _refuse_unfit(field: str, given: Any) -> None:
    """Refuse a field that would be invalid in a pod template."""
    errors, _ = _judged({field: given})
    refuse((location[1:], message) for location, message in errors)


def _judged(given: dict[str, Any]) -> tuple[Found, Found]:
    """Errors and warnings of the rules of pod templates about fields of a pod's spec."""
    case = Case(RuleSettings(), Snapshot(), builtin())
    template = {"spec": given}
    if not types.fits(template):
        template, _ = types.read(Site(case, ""), template)
    SCHEDULING(Site(case, ".spec"), template.get("spec", {}), "", template)
    errors, warnings = (
        [(_location(each.path.removeprefix(".spec")), each.message) for each in found]
        for found in (case.errors, case.warnings)
    )
    return errors, warnings


def _location(path: str) -> tuple[str | int, ...]:
    steps = re.findall(r"[^.\[\]]+", path)
    return tuple(int(each) if each.isdecimal() else each for each in steps)


def _annotation(found: Any) -> Any:
    """An annotation: an object, or a string with YAML of one, as in Volcano."""
    if not isinstance(found, str):
        return found
    mapping, why = _mapping_in(found)
    message = f'must be an annotation such as "key: value", found {quoted(found)}{why}'
    refuse([((), message)] if mapping is None else [])
    return mapping


def _annotation_key_problem(key: str) -> str | None:
    # The API server compares the keys of annotations in lower case.
    problem = qualified_name_problem(key.lower())
    return problem and f"invalid key of an annotation: {problem}"


Text = Annotated[
    str,
    BeforeValidator(lambda found: "" if is_null(found) else found),
    WithJsonSchema(_SCALAR),
]
"""A string; null is an empty one."""

_NAMESPACES = TypeAdapter(list[Annotated[Text, checked(dns_label_problem)]])
_ANNOTATIONS = TypeAdapter(
    list[
        Annotated[
            dict[Annotated[str, checked(_annotation_key_problem)], Text],
            BeforeValidator(_annotation),
        ]
    ]
)
_Seconds = Annotated[Any, BeforeValidator(_as_json), WithJsonSchema({"type": "integer"})]
_SchedulerName = Annotated[str, checked(lambda name: name and dns_subdomain_problem(name))]


def _values_by_key(schema: dict[str, Any]) -> None:
    namespace = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
    # A text is YAML itself: a line such as `key: value`, or a map in braces.
    annotation = {
        "type": ["string", "object"],
        "pattern": rf"""^\s*(\{{|["']?{KEYS}["']?\s*:(\s|$))""",
        "additionalProperties": False,
        "patternProperties": {f"^{KEYS}$": _SCALAR},
    }
    schema["properties"]["value"] = {"type": "array"}
    schema["if"] = {"properties": {"key": {"const": "namespace"}}, "required": ["key"]}
    schema["then"] = {"properties": {"value": {"items": namespace}}}
    schema["else"] = {"properties": {"value": {"items": annotation}}}


class GroupClaim(FilePart):
    """Which pods belong to a group: those of namespaces, or those with one of the annotations."""

    model_config = ConfigDict(json_schema_extra=_values_by_key)

    key: Literal["namespace", "annotation", ""] = ""
    value: list[Any] = Field(default=[])

    @field_validator("value")
    @classmethod
    def _of_the_key(cls, found: list[Any], info: ValidationInfo) -> list[Any]:
        match info.data.get("key"):
            case None:
                return []  # the key itself is wrong
            case "namespace":
                return _NAMESPACES.validate_python(found)
        return _ANNOTATIONS.validate_python(found)


class GroupToleration(FilePart):
    """A toleration of a group's pods."""

    key: str = ""
    operator: Annotated[str, WithJsonSchema({"enum": ["Exists", "Equal", ""]})] = ""
    value: Text = ""
    effect: Annotated[
        str, WithJsonSchema({"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute", ""]})
    ] = ""
    toleration_seconds: _Seconds = None
    tolerationseconds: _Seconds = None

    def of_pods(self) -> dict[str, Any]:
        """The toleration as pods have it."""
        found = self.model_dump(by_alias=True, exclude={"tolerationseconds"})
        found["tolerationSeconds"] = self.toleration_seconds or self.tolerationseconds
        return {key: each for key, each in found.items() if each not in (None, "")}


class GroupEntry(FilePart):
    """A group: labels of nodes, an affinity, tolerations and a scheduler for its pods."""

    resource_group: str = ""
    object: GroupClaim = Field(default=GroupClaim())
    scheduler_name: _SchedulerName = Field(
        "", json_schema_extra={"maxLength": 63, "pattern": f"^({DOMAIN})?$"}
    )
    tolerations: list[GroupToleration] = Field(default=[])
    labels: Annotated[dict[str, Text], WithJsonSchema(LABELS)] = Field(default={})
    affinity: Annotated[
        Any, BeforeValidator(_as_affinity), WithJsonSchema({"type": ["object", "string"]})
    ] = None

    @field_validator("tolerations")
    @classmethod
    def _tolerations_of_pods(cls, found: list[GroupToleration]) -> list[GroupToleration]:
        _refuse_unfit("tolerations", [each.of_pods() for each in found])
        return found

    @field_validator("labels")
    @classmethod
    def _labels_of_nodes(cls, found: dict[str, str]) -> dict[str, str]:
        refuse(((where[1:],), problem) for where, problem in label_problems(found))
        return found

    @field_validator("affinity")
    @classmethod
    def _affinity_of_pods(cls, found: Any) -> Any:
        _refuse_unfit("affinity", found)
        return found

    @model_validator(mode="after")
    def _has_pods(self) -> "GroupEntry":
        if self.object.key == "" and not self.resource_group and not self.object.value:
            refuse(
                [((), "needs a name (resourceGroup), or an object that says which pods are its")]
            )
        return self

    def read(self) -> ResourceGroup:
        """The group in the form that admission uses."""
        by_namespace, found = self.object.key == "namespace", self.object.value
        pairs = [] if by_namespace else [pair for each in found for pair in each.items()]
        if not self.object.key and self.resource_group:
            pairs.append((keys.RESOURCE_GROUP, self.resource_group))
        tolerations = [each.of_pods() for each in self.tolerations]
        different = (each for at, each in enumerate(tolerations) if each not in tolerations[:at])
        return ResourceGroup(
            name=self.resource_group,
            namespaces=tuple(found) if by_namespace else (),
            annotations=tuple(pairs),
            labels=self.labels,
            affinity=self.affinity,
            tolerations=tuple(different),
            scheduler_name=self.scheduler_name,
        )


class ResourceGroupsFile(FilePart):
    """The file that `pumice webhook --admission-conf` names."""

    resource_groups: Annotated[
        list[GroupEntry], BeforeValidator(lambda found: [] if is_null(found) else found)
    ]


_LIST = "resourceGroups"


def parse(raw: bytes) -> tuple[ResourceGroups, tuple[SettingProblem, ...]]:
    """Parse the file of `--admission-conf`.

    An empty file, or one that is all comments as Volcano ships it, holds no groups.

    Returns:
        The groups, and warnings about parts without effect.

    Raises:
        SettingError: The file is invalid; lists all problems in the order of the file.
    """
    content = document(raw, as_written=True)
    if content is None:
        return ResourceGroups(), ()

    def with_line(found: SettingProblem) -> SettingProblem:
        return replace(found, line=_line(content, found.location))

    try:
        file, unknown = read_leniently(ResourceGroupsFile, content)
    except SettingError as error:
        problems = sorted(map(with_line, error.problems), key=lambda each: each.line or 0)
        raise SettingError(problems, map(with_line, error.warnings)) from None
    groups = [each.read() for each in file.resource_groups]
    warnings = [*unknown, *_doubts(groups), *_overlaps(groups)]
    return ResourceGroups(groups), tuple(map(with_line, warnings))


def _line(value: Any, location: tuple[str | int, ...]) -> int:
    """The line of a value, or of the nearest parent that is in the file."""
    line: int = value.line
    for step in location:
        try:
            value = value[step]
            line = value.line
        except (LookupError, TypeError, AttributeError):
            break
    return line


def _doubts(groups: list[ResourceGroup]) -> list[SettingProblem]:
    """Warnings about groups without pods, and warnings of the rules of pod templates."""
    warnings = []
    for index, group in enumerate(groups):
        place = (_LIST, index)
        given = {"tolerations": list(group.tolerations), "affinity": group.affinity}
        _, doubts = _judged({key: value for key, value in given.items() if value})
        warnings += [SettingProblem((*place, *where), message) for where, message in doubts]
        if not group.namespaces and not group.annotations:
            message = "has no value, so no pod belongs to this group"
            warnings.append(SettingProblem((*place, "object"), message))
    return warnings


def _overlaps(groups: list[ResourceGroup]) -> list[SettingProblem]:
    """Warnings about claims of a later group that an earlier one already has."""
    warnings = []
    seen: dict[str | tuple[str, str], int] = {}
    for index, group in enumerate(groups):
        claims: list[str | tuple[str, str]] = [*group.namespaces, *group.annotations]
        for claim in dict.fromkeys(claims):
            first = seen.setdefault(claim, index)
            if first != index:
                is_name = isinstance(claim, str)
                what = f'namespace "{claim}"' if is_name else f'annotation "{": ".join(claim)}"'
                earlier = f'"{groups[first].name}" (resourceGroups[{first}])'
                message = f"claims {what}, which group {earlier} has already; that one counts"
                warnings.append(SettingProblem((_LIST, index), message))
    return warnings
