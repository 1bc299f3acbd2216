"""Merge patches that bring an object to the wanted state; empty if nothing differs.

An API server adds defaults to what it stores, and other controllers add fields of their own. So the stored object must
*contain* the wanted one, and need not equal it. Only from maps that belong to Pumice as a whole (a ConfigMap's `data`)
are unwanted keys removed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.meta import Raw

__all__ = ["changes", "contains", "difference"]


def contains(stored: Any, wanted: Any) -> bool:
    """True if a stored value contains all that is wanted; lists are compared item by item."""
    if stored is None:
        return not wanted  # servers do not store empty values
    if isinstance(wanted, Mapping):
        return isinstance(stored, Mapping) and all(
            contains(stored.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(stored, list)
            and len(stored) == len(wanted)
            and all(contains(left, right) for left, right in zip(stored, wanted, strict=True))
        )
    return bool(stored == wanted)


def difference(stored: Raw, wanted: Raw, whole: Iterable[str] = ()) -> Raw:
    """The JSON merge patch from what is stored to what is wanted.

    Args:
        stored: The object, or a part of it.
        wanted: Values that it must contain.
        whole: Fields at this level whose maps must equal, not only contain, what is wanted.

    Returns:
        The patch; empty if nothing differs.
    """
    patch: Raw = {}
    whole = frozenset(whole)
    for key, value in wanted.items():
        present = stored.get(key)
        if isinstance(value, dict):
            inner = difference(present if isinstance(present, dict) else {}, value)
            if key in whole and isinstance(present, dict):
                inner |= dict.fromkeys(name for name in present if name not in value)
            if inner:
                patch[key] = inner
        elif not contains(present, value):
            patch[key] = value
    return patch


def changes(stored: Raw, wanted: Raw) -> Raw:
    """The JSON merge patch that makes what is stored equal to what is wanted.

    Args:
        stored: The object, or a part of it.
        wanted: The new value; null is the same as a missing field.
    """
    patch: Raw = dict.fromkeys(key for key in stored if key not in wanted)
    for key, value in wanted.items():
        present = stored.get(key)
        if isinstance(value, dict) and isinstance(present, dict):
            if inner := changes(present, value):
                patch[key] = inner
        elif key not in stored or present != value:
            patch[key] = value
    return patch
