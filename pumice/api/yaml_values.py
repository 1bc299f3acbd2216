"""YAML values, built from the events of PyYAML's parser.

PyYAML's loader builds nodes first and takes twice as long, which matters for a thousand manifests.
"""

from collections.abc import Callable
from typing import Any

import yaml
from yaml.events import (
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from pumice.api import scalars
from pumice.api.json_words import kind_of

LARGEST_EXPANSION = 5_000_000
"""Maximum number of values that a document's aliases may expand to; a thousand times what a manifest needs."""

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DocumentError(Exception):
    """A text that is not YAML or JSON.

    Attributes:
        line: Line of the problem, counted from 1; None when it concerns the document as a whole.
        document: Which document of the text, counted from 1.
        column: Column, counted from 1; None if the line is enough.
        begins: Offset in the text of the document, including what precedes it.
    """

    def __init__(
        self,
        message: str,
        line: int | None = None,
        document: int = 1,
        column: int | None = None,
        begins: int = 0,
    ) -> None:
        super().__init__(message)
        self.line = line
        self.document = document
        self.column = column
        self.begins = begins


class YamlReader:
    """Builds values from the parser's events, without PyYAML's nodes.

    Attributes:
        documents: Number of the document that is being read.
        begins: Its offset in the text, including what precedes it.
    """

    def __init__(self, text: str) -> None:
        self._parser = _Parser(text)
        self._next: Callable[[], Any] = self._parser.get_event
        self._plain: dict[str, Any] = {}
        self._anchors: dict[str, Any] = {}
        self.documents = 1
        self.begins = 0

    def dispose(self) -> None:
        """Release the text."""
        self._parser.dispose()

    def next_document(self) -> Any:
        """The event with which the next document's value begins, or None after the last."""
        self._anchors = {}
        while (event := self._next()).__class__ is not DocumentStartEvent:
            if event.__class__ is StreamEndEvent:
                return None
            if event.__class__ is DocumentEndEvent:
                self.documents += 1
                self.begins = begins(event)
        self.begins = begins(event)
        event = self._next()
        self.begins = begins(event)
        return event

    def value(self, event: Any) -> Any:
        """The value that begins with an event."""
        kind = event.__class__
        if kind is ScalarEvent:
            return self._scalar(event)
        try:
            if kind is MappingStartEvent:
                return self._mapping(event, {})
            if kind is SequenceStartEvent:
                return self._sequence(event, [])
        except RecursionError:
            raise _error("nested too deeply", event) from None
        if event.anchor not in self._anchors:
            raise _error("found undefined alias", event)
        return self._anchors[event.anchor]

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if event.anchor is None and event.tag is None:
            if not event.implicit[0]:  # in quotes, or a block
                return text
            if text in self._plain:
                return self._plain[text]
        try:
            if event.tag is not None:
                value: Any = scalars.tagged(event.tag, text)
            elif event.implicit[0]:
                value = self._plain[text] = scalars.plain(text)
            else:
                value = text
        except scalars.ScalarError as error:
            raise _error(str(error), event) from None
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    _key = _scalar

    def _sequence(self, start: Any, found: list[Any]) -> list[Any]:
        self._begin(start, "seq", found)
        following = self._next
        while (event := following()).__class__ is not SequenceEndEvent:
            found.append(self.value(event))
        return found

    def _mapping(self, start: Any, found: dict[str, Any]) -> dict[str, Any]:
        self._begin(start, "map", found)
        merged: list[dict[str, Any]] = []
        following, scalar, key_of = self._next, self._scalar, self._key
        while (event := following()).__class__ is not MappingEndEvent:
            key = key_of(event) if event.__class__ is ScalarEvent else self.value(event)
            if key.__class__ is not str:
                key = _text_key(key, event)
            elif key == "<<" and event.__class__ is ScalarEvent and event.implicit[0]:
                event = following()
                merged += _mergeable(self.value(event), event)
                continue
            if key in found:
                raise _error(f"key {key!r} appears twice", event)
            event = following()
            found[key] = scalar(event) if event.__class__ is ScalarEvent else self.value(event)
        if merged:
            own = found.copy()
            found.clear()
            for each in (*merged, own):
                found.update(each)
        return found

    def _begin(self, start: Any, kind: str, found: Any) -> None:
        if start.tag not in (None, "!", scalars.TAG + kind):
            shown = start.tag.replace(scalars.TAG, "!!")
            raise _error(f"tag {shown} has no counterpart in JSON and cannot be used", start)
        if start.anchor is not None:
            self._anchors[start.anchor] = found


class WrittenScalar(str):
    """A scalar as it is written. It may be used as a string, or converted to its value.

    Attributes:
        line: Where it stands, counted from 1.
    """

    def __new__(cls, event: Any) -> "WrittenScalar":
        """Take the text of an event."""
        return super().__new__(cls, event.value)

    def __init__(self, event: Any) -> None:
        """Store its position, and whether it has quotes or a tag."""
        self.line = _line(event)
        self._event = event

    @property
    def is_null(self) -> bool:
        """True if it means null."""
        event = self._event
        plain = event.tag is None and event.implicit[0]
        return self in scalars.NULLS if plain else bool(event.tag == f"{scalars.TAG}null")

    def value(self) -> Any:
        """Its value.

        Raises:
            ScalarError: JSON cannot hold it.
        """
        event, text = self._event, str(self)
        if event.tag is not None:
            return scalars.tagged(event.tag, text)
        return scalars.plain(text) if event.implicit[0] else text


class WrittenMapping(dict[str, Any]):
    """A mapping that knows its line, counted from 1."""

    line: int


class WrittenList(list[Any]):
    """A list that knows its line, counted from 1."""

    line: int


class WrittenReader(YamlReader):
    """Builds values with line numbers: `WrittenScalar`, `WrittenMapping` and `WrittenList`."""

    def value(self, event: Any) -> Any:
        """The value that begins with an event."""
        try:
            if event.__class__ is MappingStartEvent:
                mapping = WrittenMapping()
                mapping.line = _line(event)
                return self._mapping(event, mapping)
            if event.__class__ is SequenceStartEvent:
                items = WrittenList()
                items.line = _line(event)
                return self._sequence(event, items)
        except RecursionError:
            raise _error("nested too deeply", event) from None
        return super().value(event)

    def _scalar(self, event: Any) -> WrittenScalar:
        found = WrittenScalar(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        return found

    def _key(self, event: Any) -> str:
        return str(self._scalar(event))


def value_of(found: Any) -> Any:
    """The written value as JSON values.

    Raises:
        ScalarError: JSON cannot hold it.
    """
    if isinstance(found, WrittenScalar):
        return found.value()
    if isinstance(found, dict):
        return {key: value_of(each) for key, each in found.items()}
    return [value_of(each) for each in found] if isinstance(found, list) else found


def begins(event: Any) -> int:
    """Offset of an event in the text."""
    index: int = event.start_mark.index
    return index


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1


def _error(message: str, event: Any) -> DocumentError:
    return DocumentError(message, _line(event))


def _text_key(key: Any, event: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return getattr(event, "value", str(key))
    raise _error(f"a key must be a string, found {kind_of(key)}", event)


def _mergeable(value: Any, event: Any) -> list[dict[str, Any]]:
    """Values that a merge key (`<<`) adds, lowest precedence first."""
    mappings = [value] if isinstance(value, dict) else value
    if isinstance(mappings, list) and all(isinstance(each, dict) for each in mappings):
        return mappings[::-1]
    raise _error("expected a mapping or list of mappings for merging", event)


def check_expansion(value: Any) -> None:
    """Refuse aliases that contain themselves or whose expansion is too large."""
    sizes: dict[int, int] = {}

    def size(part: Any) -> int:
        if not isinstance(part, dict | list):
            return 1
        known = sizes.get(id(part))
        if known == 0:
            raise DocumentError("an alias contains itself")
        if known is None:
            sizes[id(part)] = 0
            children = part.values() if isinstance(part, dict) else part
            known = sizes[id(part)] = 1 + sum(map(size, children))
        return known

    if size(value) > LARGEST_EXPANSION:
        raise DocumentError(f"aliases expand to more than {LARGEST_EXPANSION} values")


_INDENTED = ": is the line indented as those above it?"
_HINTS = {
    "did not find expected key": _INDENTED,
    "did not find expected '-' indicator": _INDENTED,
    "mapping values are not allowed in this context": (
        ": is the line indented as those above it, and is a string with a colon in quotes?"
    ),
}
"""Hints for parser errors that do not name the usual cause."""


def reworded(text: str, error: yaml.MarkedYAMLError) -> str | None:
    """The parser's message with a hint. The message about a tab is replaced, because it does not name the tab."""
    mark = error.problem_mark
    if mark is None or error.problem != "found character that cannot start any token":
        return error.problem and error.problem + _HINTS.get(error.problem, "")
    lines = text.splitlines()
    tab = mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t"
    return "found a tab where only spaces indent" if tab else error.problem
