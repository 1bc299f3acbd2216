"""YAML and JSON as Kubernetes reads them, and YAML that it reads as it is meant.

The reader agrees with kubectl on what a scalar is, refuses what JSON cannot hold, and refuses a key
that appears twice, which otherwise silently wins. It takes the events of PyYAML's parser: the loader's
way over nodes and constructors takes twice as long, which a thousand manifests make felt.
"""

import json
import re
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
        column: Where in the line, counted from 1; None where the line says enough.
        begins: Where the document, or what comes before it, begins in the text, counted from 0.
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


def parse(
    raw: bytes, failed: Callable[[DocumentError], None] | None = None
) -> Iterator[tuple[int, int, Any]]:
    """Read every document of a text that is not empty.

    Args:
        raw: The text.
        failed: Gets the error of each document that cannot be read; reading goes on with the next document.

    Yields:
        Number of the document and its first line, both counted from 1, and its value.

    Raises:
        DocumentError: The text is not UTF-8, or no YAML; only without `failed`.
    """
    rest, lines, documents = "", 0, 0
    try:
        rest = _decode(raw)
        yield from _documents(rest)
        return
    except DocumentError as error:
        if failed is None:
            raise
        problem = error
    while True:
        line = problem.line + lines if problem.line else None
        failed(DocumentError(str(problem), line, problem.document + documents, problem.column))
        rest, skipped = _after(rest, problem)
        lines, documents = lines + skipped, documents + problem.document
        try:
            for number, line, value in _documents(rest):
                yield number + documents, line + lines, value
            return
        except DocumentError as error:
            problem = error


def _documents(text: str) -> Iterator[tuple[int, int, Any]]:
    if _is_json_like(text):
        found = _json(text)
        if found is not None:
            documents, problem = found
            yield from documents
            if problem is not None:
                raise problem
            return
        # A flow mapping, JSON with comments, or a slip that the YAML reader tells with its line.
    yield from _yaml(text)


def _is_json_like(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _after(text: str, problem: DocumentError) -> tuple[str, int]:
    """The documents after one that cannot be read, and the number of lines before them."""
    start = _JSON_START if _is_json_like(text) else _YAML_START
    found = start.search(text, problem.begins + 1)
    at = found.start() if found else len(text)
    return text[at:], text.count("\n", 0, at)


_YAML_START = re.compile(r"^---", re.MULTILINE)
_JSON_START = re.compile(r"^(---|\{(?!\{)|\[)", re.MULTILINE)
"""Where the next document begins. Values of JSON are not indented; `{{` is an action of a Helm template."""

_Found = list[tuple[int, int, Any]]


def _json(text: str) -> tuple[_Found, DocumentError | None] | None:
    """The values of a text of JSON values, up to the first mistake; None when the text is no JSON."""
    try:
        return [(1, 1, _DECODER.decode(text))], None
    except (msgspec.DecodeError, RecursionError):
        pass
    found: _Found = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        line = text.count("\n", 0, at) + 1
        try:
            value, end = _DECODER_OF_SEVERAL.raw_decode(text, at)
        except json.JSONDecodeError as error:
            problem = _trailing_comma(error)
            if problem is None and found and text[at] in "{[":
                problem = DocumentError(f"no JSON: {error.msg}", error.lineno, column=error.colno)
            if problem is None:
                return None
            problem.document, problem.begins = len(found) + 1, at
            return found, problem
        except (ValueError, RecursionError):
            return None
        found.append((len(found) + 1, line, value))
        at = end
    return found, None


_DECODER_OF_SEVERAL = json.JSONDecoder(parse_float=scalars.number, parse_constant=scalars.number)


def _trailing_comma(error: json.JSONDecodeError) -> DocumentError | None:
    """The error for a comma after the last item of otherwise good JSON, which YAML allows and an API server does not."""
    text = error.doc
    comma = text.rfind(",", 0, error.pos + 1)
    closing = text[comma + 1 :].lstrip()[:1]
    if comma < 0 or closing not in ("}", "]") or text[comma + 1 : error.pos].strip():
        return None
    line, column = text.count("\n", 0, comma) + 1, comma - text.rfind("\n", 0, comma)
    return DocumentError(
        f'found a trailing comma before "{closing}", which JSON does not allow; remove it',
        line,
        column=column,
    )


def _check_flow(text: str, start: Any) -> None:
    """Refuse a document that is JSON but for a trailing comma.

    Args:
        text: The text.
        start: The event with which the document begins.
    """
    if start.__class__ not in (MappingStartEvent, SequenceStartEvent) or not start.flow_style:
        return
    try:
        _DECODER_OF_SEVERAL.raw_decode(text, _at(start))
    except json.JSONDecodeError as error:
        if (problem := _trailing_comma(error)) is not None:
            raise problem from None
    except (ValueError, RecursionError):
        pass  # the YAML reader tells


def _yaml(text: str) -> Iterator[tuple[int, int, Any]]:
    aliases = "&" in text and "*" in text
    reader = _Reader(text)

    def problem(what: str, line: int | None = None, column: int | None = None) -> DocumentError:
        return DocumentError(what, line, reader.documents, column, reader.begins)

    try:
        while (start := reader.next_document()) is not None:
            _check_flow(text, start)
            value = reader.value(start)
            if aliases:
                _check_expansion(value)
            if value is not None:
                yield reader.documents, start.start_mark.line + 1, value
    except DocumentError as error:
        raise problem(str(error), error.line, error.column) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = _reworded(text, error) or error.context or "no YAML"
        raise problem(what, mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        message = str(error).partition("\n")[0]
        raise problem(f"no YAML: {message}") from error
    except RecursionError:
        raise problem("nested too deeply") from None
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
        begins: Where it, or what comes before it, begins in the text.
    """

    def __init__(self, text: str) -> None:
        self._parser = _Parser(text)
        self._next: Callable[[], Any] = self._parser.get_event
        self._plain: dict[str, Any] = {}
        self._anchors: dict[str, Any] = {}
        self.documents = 1
        self.begins = 0

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
                self.begins = _at(event)
        self.begins = _at(event)
        event = self._next()
        self.begins = _at(event)
        return event

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


def _at(event: Any) -> int:
    """Where an event begins in the text."""
    index: int = event.start_mark.index
    return index


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
