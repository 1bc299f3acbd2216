"""What an object can be read as of which some fields are of a wrong type.

With `replicas: "4"` it is read as if 4 stood there, and all that is wrong with that is told. Where nobody
can tell what was meant it is read twice, without the field and with another value in its place: what is
said word for word of both has nothing to do with the field.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api.fields import FieldError
from pumice.api.kinds import Kind
from pumice.api.mistyped import another, meant
from pumice.webhook.rules.within import Within
from pumice.webhook.salvage import compares, instead, trusted, value_at, without
from pumice.webhook.type_problems import schema

__all__ = ["Reading", "readings"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How an object can be read.

    Attributes:
        objects: One or two objects to judge in its place; what is found in all of them counts.
        unreadable: Paths of the values of wrong types.
        meant: Those of them in whose place stands in all objects what was meant.
        whole: Whether in one object something stands in every place; otherwise what is found by weighing
            fields against each other does not count.
    """

    objects: Sequence[Any]
    unreadable: Sequence[str]
    meant: Sequence[str] = ()
    whole: bool = True

    def fails(self, found: Sequence[Sequence[FieldError]]) -> bool:
        """Whether what was meant is wrong itself, so that nobody can tell what was meant.

        Args:
            found: Errors of each object.
        """
        inside = Within(self.meant)
        return any(
            each.path in inside and not compares(each.code) for of_one in found for each in of_one
        )

    def trusted(self, found: Sequence[Sequence[FieldError]]) -> list[FieldError]:
        """Of what was found in each object, that which holds for the one that they stand for."""
        return trusted(found, self.unreadable, whole=self.whole)


def readings(kind: Kind, raw: Any, paths: Sequence[str]) -> Iterator[Reading]:
    """Ways to read an object, the best first; of a worse one less is trusted.

    Args:
        kind: Kind of the object.
        raw: The object, decoded without types and without nulls.
        paths: Where it has values of wrong types.

    Raises:
        RecursionError: It is nested too deep.
    """
    rest = without(raw, paths)
    found = {path: value_at(raw, path) for path in paths}
    sure, others = _values(kind, found)
    if len(sure) + len(others) == len(paths):
        read = instead(raw, sure | others)
        objects = [without(read, others), read] if others else [read]
        yield Reading(objects, paths, meant=list(sure))
        # A list or an object that was not meant may hold what others look for.
        if sure and not any(isinstance(found[path], dict | list) for path in sure):
            yield Reading([rest, read], paths)
    yield Reading([rest], paths, whole=False)


def _values(kind: Kind, found: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was meant, by path, and what else can stand where nobody can tell."""
    sure, others, known = dict[str, Any](), dict[str, Any](), schema(kind)
    for path, value in found.items():
        node = known.at(path) if known is not None and path else None
        if node is None or value is msgspec.UNSET:
            continue
        if (read := meant(node.expected, value)) is not msgspec.UNSET:
            sure[path] = read
        elif (read := another(node.expected)) is not msgspec.UNSET:
            others[path] = read
    return sure, others
