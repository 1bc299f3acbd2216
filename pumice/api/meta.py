"""What all objects share: metadata, owners, label selectors, conditions, times and numbers in labels."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec


class ApiStruct(
    msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True, frozen=True, gc=False
):
    """Base of everything read from an API server: camelCase on the wire, unknown fields ignored.

    These structs are a frozen *view*: they name what Pumice reads. Code that changes an object works on its raw JSON,
    so that fields younger than Pumice survive. The objects form trees, so the garbage collector does not search them
    for cycles: a cluster has millions of them.
    """


class OwnerReference(ApiStruct, frozen=True):
    """`metav1.OwnerReference`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiStruct, frozen=True):
    """The parts of `metav1.ObjectMeta` that are read."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def label(self, key: str) -> str:
        """Value of a label; empty if it is missing."""
        return self.labels.get(key, "") if self.labels else ""

    def annotation(self, key: str, default: str = "") -> str:
        """Value of an annotation."""
        return self.annotations.get(key, default) if self.annotations else default


LabelExpression = tuple[str, str, Collection[str]]
"""One expression of a label selector: key, operator and values."""


def labels_match(expressions: Iterable[LabelExpression], labels: Mapping[str, str]) -> bool:
    """True if every expression of a label selector holds for labels; an unknown operator holds for none.

    Semantics: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    """
    for key, operator, values in expressions:
        value = labels.get(key)
        match operator:
            case "In":
                holds = value is not None and value in values
            case "NotIn":
                holds = value is None or value not in values
            case "Exists":
                holds = value is not None
            case "DoesNotExist":
                holds = value is None
            case _:
                holds = False
        if not holds:
            return False
    return True


class LabelSelectorRequirement(ApiStruct, frozen=True):
    """One expression of a label selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(ApiStruct, frozen=True):
    """`metav1.LabelSelector`; an empty one selects everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None

    def expressions(self) -> Iterator[LabelExpression]:
        """All conditions as expressions."""
        for key, value in (self.match_labels or {}).items():
            yield key, "In", (value,)
        for each in self.match_expressions or ():
            yield each.key, each.operator, each.values or ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if the selector matches a set of labels; an unknown operator matches nothing."""
        return labels_match(self.expressions(), labels)


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that manages an object, if there is one."""
    for owner in meta.owner_references or ():
        if owner.controller:
            return owner
    return None


_LONGEST_TIME = 64
"""Characters of the longest time; longer texts are none."""


def parse_time(text: str | None) -> float | None:
    """Read an RFC 3339 time as UNIX seconds; None for a missing or unreadable one."""
    if not text:
        return None
    # As `remembered`, without its call: times of each pod are read in each pass.
    return _parse_time(text) if len(text) <= _LONGEST_TIME else None


@lru_cache(4096)  # they have whole seconds, so the pods of a gang share most of theirs
def _parse_time(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def format_time(moment: float) -> str:
    """Write UNIX seconds as Kubernetes writes times: RFC 3339, UTC, whole seconds."""
    return _format_second(math.floor(moment))


@lru_cache(256)  # most happens soon after what it follows from
def _format_second(second: int) -> str:
    day, rest = divmod(second, 86_400)
    minutes, rest = divmod(rest, 60)
    return f"{_format_day(day)}T{_DIGITS[minutes // 60]}:{_DIGITS[minutes % 60]}:{_DIGITS[rest]}Z"


@lru_cache(8)  # a whole time in one takes five times as long
def _format_day(day: int) -> str:
    # strftime would leave out the zeros before a year such as 0001, Go's zero time.
    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


_DIGITS = [f"{number:02}" for number in range(60)]


MAX_INT32 = 2**31 - 1
"""The largest number of the fields that count something."""

_MOST_DIGITS = 18


def number_in(value: object) -> int | None:
    """The integer in the value of a label or an annotation; None if it is not one or has too many digits."""
    if not isinstance(value, str) or len(value) > _MOST_DIGITS:
        return None
    return int(value) if value.isascii() and value.isdigit() else None


def version_number(resource_version: str) -> int:
    """A resourceVersion as a number, by which versions of one kind compare; 0 for a missing one."""
    return int(resource_version) if resource_version.isdecimal() else 0


Raw = dict[str, Any]
"""An object or a part of one as JSON gives it."""


_READ = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


def parse_bool(text: str) -> bool | None:
    """Read a boolean in the spelling that Go reads, as annotations, labels and arguments have it; None if the text is not one."""
    return _READ.get(text)
