"""YAML and JSON as Kubernetes reads them, and YAML that it reads as it is meant.

PyYAML's safe loader follows YAML 1.1 to the letter, kubectl does not: for it `12:30` is text and not
the number 750, and a time stays as it is written. The loader here agrees with kubectl, refuses what
JSON cannot hold, and refuses a key that appears twice, which otherwise silently wins.
"""

import json
import math
import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import msgspec
import yaml

__all__ = ["DocumentError", "dump", "parse"]

LARGEST_EXPANSION = 5_000_000
"""Values that a document's aliases may expand to; a thousand times what a manifest needs."""

_TAG = "tag:yaml.org,2002:"
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
        return [(1, 1, msgspec.json.decode(text))]
    except (msgspec.DecodeError, RecursionError):
        pass
    decoder = json.JSONDecoder()
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
    number = 1
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            loader.flat = set()
            value = loader.construct_document(node)
            if aliases:
                _check_expansion(value)
            if value is not None:
                yield number, node.start_mark.line + 1, value
            number += 1
    except DocumentError as error:
        raise DocumentError(str(error), error.line, number) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "no YAML"
        raise DocumentError(what, mark.line + 1 if mark else None, number) from error
    except yaml.YAMLError as error:
        message = str(error).partition("\n")[0]
        raise DocumentError(f"no YAML: {message}", None, number) from error
    except RecursionError:
        raise DocumentError("nested too deeply", None, number) from None
    finally:
        loader.dispose()


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"found byte 0x{raw[error.start]:02x}"
        raise DocumentError(f"must be UTF-8 text, {found}", line) from error


class _Loader(_Base):  # type: ignore[misc]  # the C loader where there is one
    """The safe loader, reading scalars as Kubernetes does."""

    flat: set[int]

    def flatten_mapping(self, node: Any) -> None:
        """Resolve merge keys (`<<`), after a look for keys that appear twice."""
        if id(node) in self.flat:
            return
        self.flat.add(id(node))
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == f"{_TAG}merge":
                continue
            if key.value in seen:
                raise DocumentError(f"key {key.value!r} appears twice", key.start_mark.line + 1)
            seen.add(key.value)
        super().flatten_mapping(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        """A mapping with text keys."""
        self.flatten_mapping(node)
        return {
            _key(self.construct_object(key, deep=True), key): self.construct_object(
                value, deep=deep
            )
            for key, value in node.value
        }

    def construct_yaml_map(self, node: Any) -> Iterator[dict[str, Any]]:
        """A mapping, which may contain itself by an alias; `_check_expansion` refuses that."""
        data: dict[str, Any] = {}
        yield data
        data.update(self.construct_mapping(node))

    def construct_finite(self, node: Any) -> float:
        """A number that JSON can hold."""
        value: float = self.construct_yaml_float(node)
        if not math.isfinite(value):
            raise DocumentError(
                f"number {node.value!r} cannot be written as JSON", node.start_mark.line + 1
            )
        return value

    def construct_refused(self, node: Any) -> Any:
        """A tag that has no counterpart in JSON."""
        tag = node.tag.replace(_TAG, "!!")
        raise DocumentError(
            f"tag {tag} has no counterpart in JSON and cannot be used", node.start_mark.line + 1
        )


def _key(key: Hashable, node: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return node.value if isinstance(node.value, str) else str(key)
    raise DocumentError(f"a key must be text, found {key!r}", node.start_mark.line + 1)


_Loader.add_constructor(f"{_TAG}map", _Loader.construct_yaml_map)
_Loader.add_constructor(f"{_TAG}float", _Loader.construct_finite)
_Loader.add_constructor(f"{_TAG}timestamp", _Base.construct_yaml_str)
for _name in ("binary", "set", "omap", "pairs"):
    _Loader.add_constructor(_TAG + _name, _Loader.construct_refused)
_Loader.add_constructor(None, _Loader.construct_refused)

_INTEGER = r"""[-+]?(?:0b[01_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)"""
_FLOAT = r"""[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"""
_SCALARS = {"int": rf"^(?:{_INTEGER})$", "float": rf"^(?:{_FLOAT})$"}
# Integers come first, because what kubectl takes for a float includes them.
_ORDER = {f"{_TAG}int": -1}
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, re.compile(_SCALARS.get(tag.removeprefix(_TAG), pattern.pattern), pattern.flags))
        for tag, pattern in sorted(resolvers, key=lambda resolver: _ORDER.get(resolver[0], 0))
        if tag != f"{_TAG}timestamp"
    ]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


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
        return self.represent_scalar(f"{_TAG}str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.yaml_implicit_resolvers = {
    first: [*_Base.yaml_implicit_resolvers[first], *_Loader.yaml_implicit_resolvers[first]]
    for first in _Base.yaml_implicit_resolvers
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
