"""YAML and JSON as Kubernetes reads them, and YAML that it reads as it is meant.

The reader agrees with kubectl on what a scalar is, refuses what JSON cannot hold, and refuses a key
that appears twice, which otherwise silently wins. It takes the events of PyYAML's parser: the loader's
way over nodes and constructors takes twice as long, which a thousand manifests make felt.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
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

from pumice.api.json_words import kind_of
from pumice.cli import scalars

__all__ = ["DocumentError", "dump", "parse"]

_DECODER = msgspec.json.Decoder(float_hook=scalars.number)

LARGEST_EXPANSION = 5_000_000
"""Values that a document's aliases may expand to; a thousand times what a manifest needs."""

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BaseDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class DocumentError(Exception):
    """A text that is no YAML or JSON.

    Attributes:
        line: Where, counted from 1; None when it concerns the document as a whole.
        document: Which document of the text, counted from 1.
    """

    def __init__(self, message: str, line: int | None = None, document: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.document = document


def parse(raw: bytes) -> Iterator[tuple[int, int, Any]]:
    """Read every document of a text that is not empty.

    Yields:
        Number of the document and its first line, both counted from 1, and its value.

    Raises:
        DocumentError: The text is not UTF-8, or no YAML.
    """
    text = _decode(raw)
    if text.lstrip()[:1] in ("{", "["):
        documents = _json(text)
        if documents is not None:
            yield from documents
            return
        # A flow mapping, JSON with comments, or a slip that the YAML reader tells with its line.
    yield from _yaml(text)


def _json(text: str) -> list[tuple[int, int, Any]] | None:
    """The values of a text of one or several JSON values; None when it is no JSON."""
    try:
        return [(1, 1, _DECODER.decode(text))]
    except (msgspec.DecodeError, RecursionError):
        pass
    decoder = json.JSONDecoder(parse_float=scalars.number, parse_constant=scalars.number)
    found: list[tuple[int, int, Any]] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        found.append((len(found) + 1, text.count("\n", 0, at) + 1, value))
        at = end
    return found


def _yaml(text: str) -> Iterator[tuple[int, int, Any]]:
    aliases = "&" in text and "*" in text
    reader = _Reader(text)
    try:
        while (start := reader.next_document()) is not None:
            value = reader.value(start)
            if aliases:
                _check_expansion(value)
            if value is not None:
                yield reader.documents, start.start_mark.line + 1, value
    except DocumentError as error:
        raise DocumentError(str(error), error.line, reader.documents) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = _reworded(text, error) or error.context or "no YAML"
        raise DocumentError(what, mark.line + 1 if mark else None, reader.documents) from error
    except yaml.YAMLError as error:
        message = str(error).partition("\n")[0]
        raise DocumentError(f"no YAML: {message}", None, reader.documents) from error
    except RecursionError:
        raise DocumentError("nested too deeply", None, reader.documents) from None
    finally:
        reader.dispose()


_INDENTED = ": is the line indented as those above it?"
_HINTS = {
    "did not find expected key": _INDENTED,
    "did not find expected '-' indicator": _INDENTED,
    "mapping values are not allowed in this context": (
        ": is the line indented as those above it, and is a text with a colon in quotes?"
    ),
}
"""What is mostly wrong where the parser's own words do not say it."""


def _reworded(text: str, error: yaml.MarkedYAMLError) -> str | None:
    """The parser's own words with a hint, but for the tab, which cannot be seen and which those do not name."""
    mark = error.problem_mark
    if mark is None or error.problem != "found character that cannot start any token":
        return error.problem and error.problem + _HINTS.get(error.problem, "")
    lines = text.splitlines()
    tab = mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t"
    return "found a tab where only spaces indent" if tab else error.problem


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"found byte 0x{raw[error.start]:02x}"
        raise DocumentError(f"must be UTF-8 text, {found}", line) from error


class _Reader:
    """Makes values of the parser's events, without the nodes that PyYAML puts in between.

    Attributes:
        documents: Number of the document that is being read.
    """

    def __init__(self, text: str) -> None:
        self._parser = _Parser(text)
        self._next: Callable[[], Any] = self._parser.get_event
        self._plain: dict[str, Any] = {}
        self._anchors: dict[str, Any] = {}
        self.documents = 1

    def dispose(self) -> None:
        """Let go of the text."""
        self._parser.dispose()

    def next_document(self) -> Any:
        """The event with which the next document's value begins, or None after the last."""
        self._anchors = {}
        while (event := self._next()).__class__ is not DocumentStartEvent:
            if event.__class__ is StreamEndEvent:
                return None
            if event.__class__ is DocumentEndEvent:
                self.documents += 1
        return self._next()

    def value(self, event: Any) -> Any:
        """The value that begins with an event."""
        kind = event.__class__
        if kind is ScalarEvent:
            return self._scalar(event)
        if kind is MappingStartEvent:
            return self._mapping(event)
        if kind is SequenceStartEvent:
            return self._sequence(event)
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

    def _sequence(self, start: Any) -> list[Any]:
        found: list[Any] = []
        self._begin(start, "seq", found)
        following = self._next
        while (event := following()).__class__ is not SequenceEndEvent:
            found.append(self.value(event))
        return found

    def _mapping(self, start: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._begin(start, "map", found)
        merged: list[dict[str, Any]] = []
        following, scalar = self._next, self._scalar
        while (event := following()).__class__ is not MappingEndEvent:
            key = scalar(event) if event.__class__ is ScalarEvent else self.value(event)
            if key.__class__ is not str:
                key = _key(key, event)
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


def _error(message: str, event: Any) -> DocumentError:
    return DocumentError(message, event.start_mark.line + 1)


def _key(key: Any, event: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return getattr(event, "value", str(key))
    raise _error(f"a key must be text, found {kind_of(key)}", event)


def _mergeable(value: Any, event: Any) -> list[dict[str, Any]]:
    """What a merge key (`<<`) adds, the weakest first."""
    mappings = [value] if isinstance(value, dict) else value
    if isinstance(mappings, list) and all(isinstance(each, dict) for each in mappings):
        return mappings[::-1]
    raise _error("expected a mapping or list of mappings for merging", event)


def _check_expansion(value: Any) -> None:
    """Refuse aliases that contain themselves or that grow beyond all measure."""
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


class _Dumper(_BaseDumper):  # type: ignore[misc]  # the C dumper where there is one
    """The safe dumper, quoting whatever Kubernetes would not read as text."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write shared parts out in full."""
        del data
        return True

    def represent_text(self, text: str) -> Any:
        """Text of several lines as a block."""
        return self.represent_scalar(f"{scalars.TAG}str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _Dumper.represent_text)
_NUMBERS = [(f"{scalars.TAG}int", scalars.INTEGER), (f"{scalars.TAG}float", scalars.FLOAT)]
_Dumper.yaml_implicit_resolvers = {
    first: [*known, *(_NUMBERS if first in scalars.NUMERIC else ())]
    for first, known in _BaseDumper.yaml_implicit_resolvers.items()
}


def dump(documents: Iterable[Any]) -> str:
    """Write values as YAML documents."""
    text: str = yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        width=100,
        explicit_start=True,
        allow_unicode=True,
    )
    return text
