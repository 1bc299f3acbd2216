"""What a CRD says about a field beyond its type.

Markers stand in `Annotated[...]` on the structs; the CRD generator reads them, decoding does not
enforce them: an object that breaks a bound must still be readable, so that every problem of it can
be reported at once and so that old objects can be repaired.
"""

from typing import Any

import msgspec

DNS_LABEL_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """A CEL rule over several fields, which the API server enforces.

    Attributes:
        rule: CEL expression over `self`, the value with the rule.
        message: The error message if the rule does not hold.
    """

    rule: str
    message: str


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """Constraints of one field; whatever is None is not constrained.

    Attributes:
        default: Default that the API server writes.
        required: Whether the API server refuses an object without the field.
        format: OpenAPI format, `int32` unless given for integers.
        quantity: The value, or each value of a map, is a quantity (integer or text).
        list_map_keys: Keys that make the items of a list unique.
        atomic: The list is replaced as a whole by server-side apply.
        validations: CEL rules that must hold for the value.
        partial: The value only overrides parts of another one, so nothing in it is defaulted.
    """

    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    pattern: str | None = None
    enum: tuple[str, ...] | None = None
    default: Any = None
    required: bool = False
    nullable: bool = False
    format: str | None = None
    quantity: bool = False
    list_map_keys: tuple[str, ...] | None = None
    atomic: bool = False
    validations: tuple[Validation, ...] = ()
    partial: bool = False


class Preserved(msgspec.Struct, frozen=True):
    """A raw part of an object whose unknown fields the API server must keep.

    Attributes:
        kind: Which hand-written schema describes what is known of it, for example `PodTemplate`.
    """

    kind: str
