"""Keywords of structural schemas, each with the types of JSON that its value may have."""

from typing import Any

__all__ = ["SchemaError", "check_keywords"]

_KEYWORDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("additionalProperties", (dict, bool)),
    ("allOf", list),
    ("anyOf", list),
    ("enum", list),
    ("format", str),
    ("items", dict),
    ("maxItems", int),
    ("maxLength", int),
    ("maxProperties", int),
    ("maximum", (int, float)),
    ("minItems", int),
    ("minLength", int),
    ("minProperties", int),
    ("minimum", (int, float)),
    ("multipleOf", (int, float)),
    ("not", dict),
    ("oneOf", list),
    ("pattern", str),
    ("properties", dict),
    ("required", list),
    ("type", str),
    ("x-kubernetes-list-map-keys", list),
    ("x-kubernetes-list-type", str),
    ("x-kubernetes-map-type", str),
)


class SchemaError(ValueError):
    """An invalid schema: a keyword has a value of the wrong type."""


def check_keywords(schema: Any) -> None:
    """Check the keywords of one node.

    Raises:
        SchemaError: The schema is invalid.
    """
    if not isinstance(schema, dict):
        raise SchemaError(f"expected a schema, found {schema!r}")
    for keyword, types in _KEYWORDS:
        if keyword in schema and not isinstance(schema[keyword], types):
            raise SchemaError(f"{keyword}: unexpected value {schema[keyword]!r}")
    if schema.get("multipleOf") == 0:
        raise SchemaError("multipleOf: expected a number other than 0")
    for keyword in ("required", "x-kubernetes-list-map-keys"):
        if any(not isinstance(name, str) for name in schema.get(keyword, ())):
            raise SchemaError(f"{keyword}: expected names, found {schema[keyword]!r}")
