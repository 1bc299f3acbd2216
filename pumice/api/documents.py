"""YAML and JSON as Kubernetes reads them.

The reader reads scalars as kubectl does. It refuses values that JSON cannot hold, and duplicate keys, of which other
readers silently keep the last.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import yaml
from yaml.events import MappingStartEvent, SequenceStartEvent

from pumice.api import scalars
from pumice.api.yaml_values import (
    DocumentError,
    WrittenReader,
    WrittenScalar,
    YamlReader,
    begins,
    check_expansion,
    reworded,
)

_DECODER = msgspec.json.Decoder(float_hook=scalars.number)

MOST_UNREADABLE = 100
"""Number of unreadable documents of a text after which the rest is left unread: each costs another reading of the rest.
"""


def parse(
    raw: bytes, failed: Callable[[DocumentError], None] | None = None
) -> Iterator[tuple[int, int, Any]]:
    """Read every document of a text that is not empty.

    Args:
        raw: The text.
        failed: Gets the error of each document that cannot be read; reading goes on with the next document, until
            there are `MOST_UNREADABLE`.

    Yields:
        Number of the document and its first line, both counted from 1, and its value.

    Raises:
        DocumentError: The text is not UTF-8, or not YAML; only without `failed`.
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
    for unreadable in itertools.count(1):
        line = problem.line + lines if problem.line else None
        failed(DocumentError(str(problem), line, problem.document + documents, problem.column))
        rest, skipped = _after(rest, problem)
        lines, documents = lines + skipped, documents + problem.document
        if unreadable == MOST_UNREADABLE and rest:
            message = f"found {MOST_UNREADABLE} documents that cannot be read, the rest is not read"
            failed(DocumentError(message, lines + 1, documents + 1))
            return
        try:
            for number, line, value in _documents(rest):
                yield number + documents, line + lines, value
            return
        except DocumentError as error:
            problem = error


def written(raw: bytes) -> list[Any]:
    """The values of a text's documents that are not empty, as `WrittenScalar`, `WrittenMapping` and `WrittenList`.

    Raises:
        DocumentError: The text is not UTF-8, or not YAML.
    """
    values = [value for _, _, value in _yaml(_decode(raw), written=True)]
    return [each for each in values if not (isinstance(each, WrittenScalar) and each.is_null)]


def _documents(text: str) -> Iterator[tuple[int, int, Any]]:
    if _is_json_like(text):
        found = _json(text)
        if found is not None:
            documents, problem = found
            yield from documents
            if problem is not None:
                raise problem
            return
        # A flow mapping, JSON with comments, or a mistake that the YAML reader reports with its line.
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
    """The error for a comma after the last item of otherwise valid JSON. YAML allows the comma, an API server does not."""
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
    """Refuse a document that is valid JSON except for a trailing comma."""
    if start.__class__ not in (MappingStartEvent, SequenceStartEvent) or not start.flow_style:
        return
    try:
        _DECODER_OF_SEVERAL.raw_decode(text, begins(start))
    except json.JSONDecodeError as error:
        if (problem := _trailing_comma(error)) is not None:
            raise problem from None
    except (ValueError, RecursionError):
        pass  # the YAML reader reports it


def _yaml(text: str, *, written: bool = False) -> Iterator[tuple[int, int, Any]]:
    aliases = "&" in text and "*" in text
    reader = WrittenReader(text) if written else YamlReader(text)

    def problem(what: str, line: int | None = None, column: int | None = None) -> DocumentError:
        return DocumentError(what, line, reader.documents, column, reader.begins)

    try:
        while (start := reader.next_document()) is not None:
            if not written:
                _check_flow(text, start)
            value = reader.value(start)
            if aliases:
                check_expansion(value)
            if value is not None:
                yield reader.documents, start.start_mark.line + 1, value
    except DocumentError as error:
        raise problem(str(error), error.line, error.column) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = reworded(text, error) or error.context or "no YAML"
        raise problem(what, mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        message = str(error).partition("\n")[0]
        raise problem(f"no YAML: {message}") from error
    except RecursionError:
        raise problem("nested too deeply") from None
    finally:
        reader.dispose()


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"found byte 0x{raw[error.start]:02x}"
        raise DocumentError(f"must be UTF-8 text, {found}", line) from error
