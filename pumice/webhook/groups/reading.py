"""YAML, read field by field: whatever is wrong with one has a path and a line.

Nodes are read as the field needs them and not as YAML guesses: `1` and `yes` are texts where a text
is expected, as in Volcano.
"""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
import yaml
from yaml.constructor import SafeConstructor

from pumice.api.fields import did_you_mean

__all__ = ["Place", "Problem", "Reader", "compose"]

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_LARGEST = 100_000
"""Values of a file, aliases written out; a ConfigMap has no room for as many."""


_DEEPEST = 100
"""Levels of a file; the reader of YAML is a recursion in C, which deeper ones would crash."""


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
    """A node and where it stands."""

    path: str
    node: Any

    @property
    def line(self) -> int:
        """Its first line, counted from 1."""
        line: int = self.node.start_mark.line
        return line + 1

    @property
    def is_null(self) -> bool:
        """Whether nothing stands there."""
        return bool(self.node.tag == f"{_TAG}null")

    @property
    def is_mapping(self) -> bool:
        """Whether a mapping stands there."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_text(self) -> bool:
        """Whether a scalar stands there that is not null."""
        return isinstance(self.node, yaml.ScalarNode) and not self.is_null


class _BrokenError(Exception):
    """A value that JSON cannot hold."""


def compose(raw: bytes) -> tuple[list[Place], list[Problem]]:
    """The documents of a text that are not empty, or what is wrong with it as YAML."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"must be UTF-8 text, found byte 0x{raw[error.start]:02x}"
        return [], [Problem("", line, found)]
    try:
        deep = _too_deep(text)
        if deep is not None:
            return [], [Problem("", deep, f"must be nested at most {_DEEPEST} deep")]
        nodes = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "no YAML"
        return [], [Problem("", mark.line + 1 if mark is not None else None, what)]
    except (yaml.YAMLError, RecursionError) as error:
        return [], [Problem("", None, f"no YAML: {str(error).partition(chr(10))[0]}")]
    if sum(1 for node in nodes for _ in _spread(node)) > _LARGEST:
        return [], [Problem("", None, f"must hold at most {_LARGEST} values, aliases written out")]
    places = [Place("", node) for node in nodes]
    return [place for place in places if not place.is_null], []


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

    def at(self, path: str, message: str) -> Problem:
        """A problem at a path, with the line of the nearest place above it that was read."""
        above = path
        while above and above not in self._lines:
            above = above[: max(above.rfind("."), above.rfind("["), 0)]
        return Problem(path, self._lines.get(above), message)

    def warn(self, place: Place, message: str) -> None:
        """Note that a place has no effect."""
        self.warnings.append(Problem(place.path, place.line, message))

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
            self.error(place, f"must be a mapping, found {_shown(place)}")
            return {}
        self._repeated(place)
        # What is behind an alias is read more than once, and must be the same each time.
        node = yaml.MappingNode(place.node.tag, list(place.node.value), place.node.start_mark)
        try:
            SafeConstructor().flatten_mapping(node)
        except (yaml.YAMLError, RecursionError):
            self.error(place, "must merge (<<) mappings only")
            return {}
        found = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            found[name] = self._place(_below(place.path, name), value)
        return found

    def _place(self, path: str, node: Any) -> Place:
        place = Place(path, node)
        self._lines.setdefault(path, place.line)
        return place

    def _repeated(self, place: Place) -> None:
        seen: set[str] = set()
        for key, value in place.node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
                if key.value in seen:
                    self.error(Place(_below(place.path, key.value), value), "appears twice")
                seen.add(key.value)

    def items(self, place: Place) -> list[Place]:
        """The items of a list; empty where there is none."""
        if place.is_null:
            return []
        if not isinstance(place.node, yaml.SequenceNode):
            self.error(place, f"must be a list, found {_shown(place)}")
            return []
        return [self._place(f"{place.path}[{i}]", node) for i, node in enumerate(place.node.value)]

    def text(self, place: Place) -> str:
        """A scalar as it is written; empty where there is none."""
        if place.is_null:
            return ""
        if not isinstance(place.node, yaml.ScalarNode):
            self.error(place, f"must be a text, found {_shown(place)}")
            return ""
        text: str = place.node.value
        return text

    def number(self, place: Place) -> int | None:
        """A whole number, or None where there is none."""
        try:
            value = self._plain(place.path, place.node)
        except (_BrokenError, yaml.YAMLError, ValueError):
            value = None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.error(place, f"must be a whole number, found {_shown(place)}")
        return None

    def value(self, place: Place) -> Any:
        """A value as JSON has it, or None where it cannot be written so."""
        try:
            return self._plain(place.path, place.node)
        except (_BrokenError, yaml.YAMLError, ValueError) as error:
            self.error(place, str(error).partition("\n")[0])
        except RecursionError:
            self.error(place, "is nested too deep")
        return None

    def _plain(self, path: str, node: Any) -> Any:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            node = yaml.MappingNode(node.tag, list(node.value), node.start_mark)
            SafeConstructor().flatten_mapping(node)
            return {
                str(key.value): self._plain(f"{path}.{key.value}", value)
                for key, value in node.value
            }
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(f"{path}[{i}]", item) for i, item in enumerate(node.value)]
        if node.tag == f"{_TAG}timestamp":
            return node.value
        value = SafeConstructor().construct_object(node)
        if isinstance(value, float) and not -1e308 < value < 1e308:
            raise _BrokenError(f"number {node.value} cannot be written as JSON")
        if not isinstance(value, str | int | float | None):
            raise _BrokenError(f"tag {node.tag.replace(_TAG, '!!')} has no counterpart in JSON")
        return value


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _too_deep(text: str) -> int | None:
    """The line, counted from 1, where a text is nested too deep; None when it is not."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST and event.start_mark is not None:
                return event.start_mark.line + 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _spread(node: Any) -> Iterator[Any]:
    """Every node below one, those behind aliases as often as they are named; ends above the limit."""
    waiting, count = [node], 0
    while waiting and count <= _LARGEST:
        each = waiting.pop()
        count += 1
        yield each
        if isinstance(each, yaml.MappingNode):
            waiting.extend(value for _, value in each.value)
        elif isinstance(each, yaml.SequenceNode):
            waiting.extend(each.value)


def _shown(place: Place) -> str:
    """What stands there, in a few words."""
    node = place.node
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    text: str = node.value
    return f'"{text[:40]}…"' if len(text) > 40 else f'"{text}"'
