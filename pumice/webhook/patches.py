"""JSON patches (RFC 6902): one operation for each changed field.

Changes are computed from the decoded object, and applied to the raw one, so fields that Pumice does not know are kept.
`add` on a member sets it whether or not it was there, so it is the only operation needed. A missing parent is created
first.
"""

import copy
from typing import Any

import msgspec

from pumice.api.reviews import PatchOperation


def escape(key: str) -> str:
    """Spell a key as a segment of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


class Patch(msgspec.Struct, eq=False):
    """Operations in the order in which they are applied.

    Attributes:
        operations: The operations so far.
    """

    operations: list[PatchOperation] = []
    _parents: list[str] = []

    def missing(self, pointer: str) -> None:
        """Declare that an object does not exist; it is created when a field of it is set."""
        self._parents.append(pointer)

    def set(self, pointer: str, value: Any) -> None:
        """Set one member by its JSON pointer, whose keys are escaped."""
        if self._parents:
            for parent in [each for each in self._parents if pointer.startswith(each + "/")]:
                self._parents.remove(parent)
                self.operations.append(PatchOperation("add", parent, {}))
        self.operations.append(PatchOperation("add", pointer, value))


def applied(document: dict[str, Any], operations: list[PatchOperation]) -> dict[str, Any]:
    """Apply the operations of a `Patch`: each adds a member of an object or an item of a list.

    Returns:
        The changed document. The given one is not changed; only objects on the path are copied.

    Raises:
        LookupError: The parent of a pointer does not exist.
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
