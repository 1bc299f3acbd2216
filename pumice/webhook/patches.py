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


class Patch(msgspec.Struct, eq=False):
    """Operations in the order in which they are carried out.

    Attributes:
        operations: The operations so far.
    """

    operations: list[PatchOperation] = []
    _parents: list[str] = []

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
    """Carry out operations that a `Patch` has made: each adds a member of an object or an item of a list.

    Returns:
        The changed document; of the given one, which is not touched, only what lies on the way is copied.

    Raises:
        LookupError: A pointer leads nowhere.
    """
    if not operations:
        return document
    changed = document.copy()
    own = {id(changed)}
    for operation in operations:
        _, *way, last = operation.path.split("/")
        place: Any = changed
        for segment in way:
            key = int(segment) if isinstance(place, list) else _unescaped(segment)
            if id(place[key]) not in own:
                place[key] = copy.copy(place[key])
                own.add(id(place[key]))
            place = place[key]
        value = msgspec.to_builtins(operation.value)
        if isinstance(place, list):
            place.insert(len(place) if last == "-" else int(last), value)
        else:
            place[_unescaped(last)] = value
    return changed


def _unescaped(segment: str) -> str:
    return segment.replace("~1", "/").replace("~0", "~") if "~" in segment else segment
