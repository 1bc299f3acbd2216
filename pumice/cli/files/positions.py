"""Lines of fields in manifests.

Reading manifests does not record positions, since nearly all files have no problems. When a line is needed, the
document is parsed again by PyYAML's composer, whose nodes have positions. JSON is YAML, too.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import yaml

from pumice.cli.exits import UserError
from pumice.cli.files.contents import read_bytes
from pumice.cli.files.manifests import Source

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Composer(_Loader):  # type: ignore[misc] # which of two classes it is, is known at run time only
    """Composes nodes without resolving the types of scalars, in half the time."""

    def resolve(self, *_: object) -> str:
        return ""

    def descend_resolver(self, *_: object) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass


_BREAK = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")
"""Line ends of YAML."""
_NEXT = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
"""Start of the next document, or end of this one."""
_INDEX = re.compile(r"\[(\d+)\]")
_MERGE = "<<"


class Positions:
    """Finds lines of fields. Each file is read at most once; the last document, or item of a JSON list, is cached."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        """Create it.

        Args:
            texts: Contents of what cannot be read a second time, such as stdin, by name.
        """
        self._texts = texts
        self._lines: dict[str, tuple[str, list[int]]] = {}
        self._items: tuple[tuple[str, int], list[slice]] = ("", 0), []
        self._last: tuple[str, int, int] | None = None
        self._first = 0
        self._node: yaml.Node | None = None

    def line(self, source: Source, path: str = "") -> int:
        """The line of a field, counted from 1; if it is absent, that of the nearest parent that exists.

        Args:
            source: Source of the object.
            path: The field in the object, as in field errors; empty for the object as a whole.
        """
        item = self._json_item(source) if source.item else None
        key = source.file, source.line, source.item if item else 0
        if self._last != key:
            self._last, self._node = key, self._document(source, item)
        node = self._node
        if node is None:
            return source.line
        if source.item and item is None:
            items = node if isinstance(node, yaml.SequenceNode) else _child(node, "items")
            if not isinstance(items, yaml.SequenceNode) or len(items.value) < source.item:
                return source.line
            node = items.value[source.item - 1]
        return self._first - 1 + _walk(node, path, _line(node))

    def _json_item(self, source: Source) -> slice | None:
        """Where an item of a JSON list is in the text; None if the document is not JSON.

        The nodes of a document take 40 times the memory of its text, so each item of a list is composed by itself.
        """
        key = source.file, source.line
        if self._items[0] != key:
            try:
                text, lines = self._text(source.file)
                found = _json_items(text, lines[source.line - 1])
            except (UserError, ValueError, IndexError, RecursionError):
                found = []
            self._items = key, found
        found = self._items[1]
        return found[source.item - 1] if source.item <= len(found) else None

    def _document(self, source: Source, item: slice | None) -> yaml.Node | None:
        """A document, or the item of one, with lines counted from its first one; None if it cannot be parsed."""
        try:
            text, lines = self._text(source.file)
            start = lines[source.line - 1]
            part = item or slice(start, _end(text, start))
            self._first = bisect_right(lines, part.start)
            loader = _Composer(text[part])
        except (UserError, ValueError, IndexError, yaml.YAMLError):
            return None  # the file has changed since it was read, for example
        try:
            node: yaml.Node | None = loader.get_node() if loader.check_node() else None
        except (yaml.YAMLError, RecursionError):
            return None
        finally:
            loader.dispose()
        return node

    def _text(self, file: str) -> tuple[str, list[int]]:
        """A file's text, and where each of its lines begins."""
        if file not in self._lines:
            raw = self._texts[file] if file in self._texts else read_bytes(file)
            text = raw.decode("utf-8-sig")
            ends = [match.end() for match in _BREAK.finditer(text)]
            self._lines[file] = text, [0, *ends]
        return self._lines[file]


def _end(text: str, start: int) -> int:
    """Where a document that begins there ends."""
    if text[start : start + 1] in ("{", "["):
        try:
            return json.JSONDecoder().raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            pass  # a flow mapping of YAML
    after = _NEXT.search(text, start + 3)
    return after.start() if after else len(text)


def _json_items(text: str, start: int) -> list[slice]:
    """Where the items of a JSON list begin and end, or those of the field `items` of a JSON object.

    Raises:
        ValueError: The document that begins there is not JSON.
    """
    decode = json.JSONDecoder().raw_decode
    at = _after_separators(text, start)
    if text[at] == "{":
        key, at = decode(text, _after_separators(text, at + 1))
        while key != "items":
            _, at = decode(text, _after_separators(text, at))
            key, at = decode(text, _after_separators(text, at))
        at = _after_separators(text, at)
    found = []
    at = _after_separators(text, at + 1)
    while text[at] != "]":
        _, end = decode(text, at)
        found.append(slice(at, end))
        at = _after_separators(text, end)
    return found


def _after_separators(text: str, at: int) -> int:
    while text[at] in " \t\r\n,:":
        at += 1
    return at


def _line(node: yaml.Node) -> int:
    line: int = node.start_mark.line
    return line + 1


def _walk(node: yaml.Node, path: str, line: int) -> int:
    """The line of a field below a node with a known line."""
    while path:
        if isinstance(node, yaml.SequenceNode):
            matched = _INDEX.match(path)
            if matched is None or int(matched[1]) >= len(node.value):
                return line
            node, path = node.value[int(matched[1])], path[matched.end() :]
            line = _line(node)
            continue
        step = _step(node, path.removeprefix("."))
        if step is None:
            return line
        line, node, path = step
    return line


def _step(node: yaml.Node, path: str) -> tuple[int, yaml.Node, str] | None:
    """The line and the value of the key with which a path begins, and the rest of the path.

    A key may have dots and brackets itself (`limits.nvidia.com/gpu`, `labels[app.kubernetes.io/name]`), so the longest
    key of the mapping with which the path begins is used.
    """
    best: tuple[int, yaml.Node, str] | None = None
    longest = -1
    for key, value in _entries(node):
        for written in (key, f"[{key}]"):
            rest = path[len(written) :]
            fits = path.startswith(written) and rest[:1] in ("", ".", "[")
            if fits and len(written) > longest:
                longest, best = len(written), (_line_of_key(node, key), value, rest)
    return best


def _entries(node: yaml.Node) -> list[tuple[str, yaml.Node]]:
    """Keys and values of a mapping, those of its merge keys (`<<`) first; empty for other nodes."""
    if not isinstance(node, yaml.MappingNode):
        return []
    merged: list[tuple[str, yaml.Node]] = []
    own: list[tuple[str, yaml.Node]] = []
    for key, value in node.value:
        if _is_merge(key):
            parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
            merged += [entry for part in parts for entry in _entries(part)]
        else:
            own.append((str(key.value), value))
    return [*merged, *own]


def _line_of_key(node: yaml.Node, name: str) -> int:
    """The line of a key in a mapping, or of the merge key that adds it."""
    found = _line(node)
    for key, _ in node.value:
        if str(key.value) == name:
            return _line(key)
        if _is_merge(key):
            found = _line(key)
    return found


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == _MERGE and not key.style


def _child(node: yaml.Node, name: str) -> yaml.Node | None:
    return next((value for key, value in _entries(node) if key == name), None)
