"""YAML, read field by field: whatever is wrong with one has a path and a line.

A field says what it needs, and YAML does not guess: `1` and `yes` are texts where a text is expected,
as in Volcano.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from pumice.api.documents import written
from pumice.api.fields import did_you_mean
from pumice.api.scalars import ScalarError
from pumice.api.yaml_values import WrittenScalar

__all__ = ["Place", "Problem", "Reader", "compose"]


class Problem(msgspec.Struct, frozen=True):
    """Something wrong or doubtful.

    Attributes:
        path: Of the field, for example `resourceGroups[0].object.key`; empty for the whole file.
        line: Where, counted from 1; None when it concerns no line.
        message: What was found and what would be right.
    """

    path: str
    line: int | None
    message: str

    def __str__(self) -> str:
        """`line 3: resourceGroups[0].object.key: …`, as far as it is known."""
        where = [f"line {self.line}"] if self.line is not None else []
        return ": ".join([*where, *([self.path] if self.path else []), self.message])


class Place(msgspec.Struct, frozen=True):
    """A value as it is written, and where it stands."""

    path: str
    found: Any

    @property
    def line(self) -> int:
        """Its first line, counted from 1."""
        line: int = self.found.line
        return line

    @property
    def is_null(self) -> bool:
        """Whether nothing stands there."""
        return isinstance(self.found, WrittenScalar) and self.found.is_null

    @property
    def is_mapping(self) -> bool:
        """Whether a mapping stands there."""
        return isinstance(self.found, dict)

    @property
    def is_text(self) -> bool:
        """Whether a scalar stands there that is not null."""
        return isinstance(self.found, WrittenScalar) and not self.found.is_null

    def __str__(self) -> str:
        if not isinstance(self.found, WrittenScalar):
            return "a mapping" if self.is_mapping else "a list"
        return f'"{self.found[:40]}…"' if len(self.found) > 40 else f'"{self.found}"'


def compose(raw: bytes) -> list[Place]:
    """The documents of a text that are not empty.

    Raises:
        DocumentError: The text cannot be read.
    """
    return [Place("", found) for found in written(raw)]


class Reader:
    """Reads places, and notes what is wrong with them.

    Attributes:
        errors: What cannot be used.
        warnings: What has no effect.
    """

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []

    def error(self, place: Place, message: str) -> None:
        """Note that a place cannot be used."""
        self.errors.append(Problem(place.path, place.line, message))

    def warn(self, place: Place, message: str) -> None:
        """Note that a place has no effect."""
        self.warnings.append(Problem(place.path, place.line, message))

    def at(self, path: str, message: str) -> Problem:
        """A problem at a path, with the line of the nearest place above it that was read."""
        above = path
        while above and above not in self._lines:
            above = above[: max(above.rfind("."), above.rfind("["), 0)]
        return Problem(path, self._lines.get(above), message)

    def mapping(self, place: Place, known: Collection[str]) -> dict[str, Place]:
        """The members of a mapping that are not null, by key; empty where there is none.

        Args:
            place: Where it should be.
            known: Keys that it may have; others have no effect, and that is noted.
        """
        found = self.members(place)
        for name, member in found.items():
            if name not in known:
                hint = did_you_mean(name, known) or f", known are {', '.join(known)}"
                self.warn(member, f"is no field and has no effect{hint}")
        return {name: found[name] for name in found if name in known and not found[name].is_null}

    def members(self, place: Place) -> dict[str, Place]:
        """All members of a mapping, by key; empty where there is none."""
        if place.is_null:
            return {}
        if not place.is_mapping:
            self.error(place, f"must be a mapping, found {place}")
            return {}
        return {name: self._member(place, name, value) for name, value in place.found.items()}

    def items(self, place: Place) -> list[Place]:
        """The items of a list; empty where there is none."""
        if place.is_null:
            return []
        if not isinstance(place.found, list):
            self.error(place, f"must be a list, found {place}")
            return []
        return [self._item(place, index, value) for index, value in enumerate(place.found)]

    def text(self, place: Place) -> str:
        """A scalar as it is written; empty where there is none."""
        if place.is_null or place.is_text:
            return "" if place.is_null else str(place.found)
        self.error(place, f"must be a text, found {place}")
        return ""

    def number(self, place: Place) -> int | None:
        """A whole number, or None where there is none."""
        try:
            value = self._plain(place)
        except ScalarError:
            value = None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.error(place, f"must be a whole number, found {place}")
        return None

    def value(self, place: Place) -> Any:
        """A value as JSON has it, or None where it cannot be written so."""
        try:
            return self._plain(place)
        except ScalarError as error:
            self.error(place, str(error))
        except RecursionError:
            self.error(place, "is nested too deeply")
        return None

    def _plain(self, place: Place) -> Any:
        found = place.found
        if isinstance(found, WrittenScalar):
            return found.value()
        if isinstance(found, dict):
            return {
                name: self._plain(self._member(place, name, value)) for name, value in found.items()
            }
        return [self._plain(self._item(place, index, value)) for index, value in enumerate(found)]

    def _member(self, place: Place, name: str, found: Any) -> Place:
        return self._below(f"{place.path}.{name}" if place.path else name, found)

    def _item(self, place: Place, index: int, found: Any) -> Place:
        return self._below(f"{place.path}[{index}]", found)

    def _below(self, path: str, found: Any) -> Place:
        place = Place(path, found)
        self._lines.setdefault(path, place.line)
        return place
