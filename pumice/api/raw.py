"""Fields of raw JSON that anyone may have written: a value of the type that the field should have, and an empty one otherwise."""

from typing import Any

from pumice.api.meta import Raw


def object_in(owner: Any, field: str) -> Raw:
    """The object in a field; empty if there is none."""
    found = owner.get(field) if isinstance(owner, dict) else None
    return found if isinstance(found, dict) else {}


def list_in(owner: Any, field: str) -> list[Any]:
    """The list in a field; empty if there is none."""
    found = owner.get(field) if isinstance(owner, dict) else None
    return found if isinstance(found, list) else []


def objects_in(owner: Any, field: str) -> list[Raw]:
    """The objects of the list in a field, without its other items."""
    return [each for each in list_in(owner, field) if isinstance(each, dict)]


def text_in(owner: Any, field: str) -> str:
    """The string in a field; empty if there is none."""
    found = owner.get(field) if isinstance(owner, dict) else None
    return found if isinstance(found, str) else ""
