"""JSON patches (RFC 6902), built by hand: one operation a changed field, none where nothing changes.

What to write is decided on the decoded object; the operations are carried out on the raw one, so
fields that Pumice does not know survive. `add` on a member sets it whether or not it was there, so it
is the only operation needed; a parent that is missing is made first.
"""

import copy
from typing import Any

import msgspec

from pumice.api.reviews import PatchOperation

__all__ = ["Patch", "applied", "escape"]


def escape(key: str) -> str:
    """Spell a key as a segment of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


class Patch:
    """Operations in the order in which they are carried out.

    Attributes:
        operations: The operations so far.
    """

    __slots__ = ("_parents", "operations")

    def __init__(self) -> None:
        self.operations: list[PatchOperation] = []
        self._parents: list[str] = []

    def missing(self, pointer: str) -> None:
        """State that an object is not there; it is made when something in it is set."""
        self._parents.append(pointer)

    def set(self, pointer: str, value: Any) -> None:
        """Set one member by its JSON pointer, whose keys are escaped."""
        if self._parents:
            for parent in [each for each in self._parents if pointer.startswith(each + "/")]:
                self._parents.remove(parent)
                self.operations.append(PatchOperation("add", parent, {}))
        self.operations.append(PatchOperation("add", pointer, value))


def applied(document: dict[str, Any], operations: list[PatchOperation]) -> dict[str, Any]:
    """Carry a patch out.

    Returns:
        The changed document; the given one is not touched.

    Raises:
        jsonpatch.JsonPatchException: An operation does not fit the document.
        jsonpatch.JsonPointerException: A pointer leads nowhere.
    """
    if not operations:
        return document
    try:
        return _with(document, operations)
    except (LookupError, TypeError, ValueError):
        # Not what `Patch` makes for this document: carried out, or refused, by the letter.
        import jsonpatch  # late: few processes ever need it

        changed: dict[str, Any] = jsonpatch.apply_patch(document, msgspec.to_builtins(operations))
        return changed


def _with(document: dict[str, Any], operations: list[PatchOperation]) -> dict[str, Any]:
    """The document with members set; only what lies on the way to them is copied.

    Raises:
        LookupError: A pointer leads nowhere.
        TypeError: A pointer leads through what has no members.
        ValueError: An operation is none that sets a member.
    """
    changed = document.copy()
    own = {id(changed)}
    for operation in operations:
        empty, *way, last = operation.path.split("/")
        if operation.op != "add" or empty:
            raise ValueError
        place: Any = changed
        for segment in way:
            key = int(segment) if isinstance(place, list) else _unescaped(segment)
            if id(place[key]) not in own:
                place[key] = copy.copy(place[key])
                own.add(id(place[key]))
            place = place[key]
        if not isinstance(place, dict):
            raise TypeError
        place[_unescaped(last)] = msgspec.to_builtins(operation.value)
    return changed


def _unescaped(segment: str) -> str:
    return segment.replace("~1", "/").replace("~0", "~") if "~" in segment else segment
