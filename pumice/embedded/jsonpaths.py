"""The part of JSONPath that printer columns use.

Fields (`.a.b`, `["a"]` in single quotes, a backslash before a dot inside a name), indexes (`[0]`,
`[-1]`, `[*]`) and filters that compare a field of an item with a literal (`[?(@.type=="Ready")]`).
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["PathError", "compile_path"]

Step = Callable[[Any], Iterator[Any]]
Evaluate = Callable[[Any], list[Any]]

_TOKEN = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
      | \[(?P<index>-?\d+|\*)\]
      | \['(?P<quoted>[^']*)'\]
      | \[\?\(\s*@(?P<path>(?:\.(?:\\.|[^.\s=!<>)\\])+)+)\s*
            (?P<operator>==|!=)\s*(?P<literal>"[^"]*"|'[^']*'|[\w.-]+)\s*\)\]""",
    re.VERBOSE,
)


class PathError(ValueError):
    """A JSONPath that is not understood here."""


def compile_path(text: str) -> Evaluate:
    """Compile a path into a function from an object to all values found.

    Raises:
        PathError: When the path is not understood.
    """
    source = text.strip().removeprefix("{").removesuffix("}")
    if not source.startswith((".", "[")):
        source = f".{source}"
    steps: list[Step] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise PathError(f"JSONPath {text!r}: cannot read {source[position:]!r}")
        steps.append(_step(match))
        position = match.end()

    def evaluate(obj: Any) -> list[Any]:
        values = [obj]
        for step in steps:
            values = [found for value in values for found in step(value)]
        return values

    return evaluate


def _step(match: re.Match[str]) -> Step:
    if match["field"] is not None:
        return _field(re.sub(r"\\(.)", r"\1", match["field"]))
    if match["quoted"] is not None:
        return _field(match["quoted"])
    if match["index"] is not None:
        return _index(match["index"])
    return _filter(match["path"], match["operator"], match["literal"])


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and value.get(name) is not None:
            yield value[name]

    return step


def _index(text: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        items = list(value.values()) if isinstance(value, dict) else value
        if not isinstance(items, list):
            return
        if text == "*":
            yield from items
        elif -len(items) <= int(text) < len(items):
            yield items[int(text)]

    return step


def _filter(path: str, operator: str, literal: str) -> Step:
    evaluate = compile_path(path)
    wanted = literal.strip("\"'")

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = evaluate(item)
            equal = bool(found) and _text(found[0]) == wanted
            if equal is (operator == "=="):
                yield item

    return step


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
