"""Raw JSON that anyone may have written: fields, which are empty if they have another type than they should, and merge patches."""

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


def key_in(owner: Any) -> str:
    """`namespace/name` of an object."""
    metadata = object_in(owner, "metadata")
    return f"{text_in(metadata, 'namespace') or 'default'}/{text_in(metadata, 'name')}"


def text_in(owner: Any, field: str) -> str:
    """The string in a field; empty if there is none."""
    found = owner.get(field) if isinstance(owner, dict) else None
    return found if isinstance(found, str) else ""


def merged(target: Any, patch: Raw) -> Raw:
    """A merge patch (RFC 7386) applied to a copy."""
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value) if isinstance(value, dict) else value
    return found
