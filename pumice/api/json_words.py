"""How messages name types and values of JSON, with Kubernetes' words: string, integer, number, boolean, list, object.

Most values of a wrong type come from YAML: quotes or a `-` that are missing or superfluous. The message about one names
the cause.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

_KINDS: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "a list",
    type(None): "nothing",
}
_LONGEST = 100


def kind_of(value: object) -> str:
    """The type of a value with its article: `a string`; `nothing` for null."""
    return _KINDS.get(type(value), "an object")


def quoted(text: str) -> str:
    """A string as messages show it: in quotes, and cut to what a line can hold."""
    return f'"{text}"' if len(text) <= _LONGEST else f'"{text[:_LONGEST]}…"'


def shown(value: object) -> str:
    """A value of a wrong type: its type and, unless it is an object or a list, the value."""
    if isinstance(value, str):
        return f"the string {quoted(value)}"
    if isinstance(value, bool):
        return f"the boolean {'true' if value else 'false'}"
    if isinstance(value, int | float):
        return f"the {'integer' if isinstance(value, int) else 'number'} {value}"
    return kind_of(value)


def either(known: Sequence[str]) -> str:
    """Allowed values as a phrase: `a, b or c`; an empty string among them is left out."""
    known = [each for each in known if each]
    return f"{', '.join(known[:-1])} or {known[-1]}" if len(known) > 1 else known[0]


_WORDS = {
    "string": "a string",
    "boolean": "a boolean",
    "integer": "an integer",
    "int32": "an integer",
    "int64": "an integer",
    "number": "a number",
    "int-or-string": "an integer or a string",
    "quantity": "a quantity such as 500m, 2 or 4Gi",
    "time": "a time such as 2026-01-31T12:00:00Z",
    "array": "a list",
    "object": "an object",
}
_COUNTS = frozenset({"integer", "int32", "int64"})
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_DIGITS = re.compile(r"-?\d{1,18}", re.ASCII)
_CROWDED = re.compile(r"[\w./-]+:(?!//)\S.*", re.ASCII)
"""An entry of a map that YAML reads as a string because a space is missing."""
_LARGEST_COUNTED = 2**53


def type_problem(expected: str, found: Any) -> str:
    """Say what a field must hold, what it holds, and how to fix it if that is clear.

    Args:
        expected: A type of JSON as schemas call it, or one of the notation of `pod_types`.
        found: A value of another type.
    """
    hint = _hint(expected, found)
    wrong = f"json: cannot unmarshal {shown(found)} into {_WORDS[expected]}"
    return f"{wrong}; {hint}" if hint else wrong


def _hint(expected: str, found: Any) -> str:
    if found is None:
        return 'write something behind the "-", or leave it out'
    if expected == "string":
        return "put it in quotes" if isinstance(found, int | float) else ""
    if expected == "boolean":
        return _hint_for_boolean(found)
    if expected in _COUNTS:
        return _hint_for_count(found)
    if expected == "array":
        return _hint_for_list(found)
    return _hint_for_object(found) if expected == "object" else ""


def _hint_for_boolean(found: Any) -> str:
    if found in ("true", "false"):
        return "leave out the quotes"
    said = _BOOLEANS.get(found.lower()) if isinstance(found, str) else None
    return "" if said is None else f"write {json.dumps(said)}"


def _hint_for_count(found: Any) -> str:
    if isinstance(found, str):
        return "leave out the quotes" if _DIGITS.fullmatch(found) else ""
    if not isinstance(found, float) or not abs(found) < _LARGEST_COUNTED:
        return ""
    low, high = math.floor(found), math.ceil(found)
    return f"write {low}" if low == high else f"write {low} or {high}"


def _hint_for_list(found: Any) -> str:
    if isinstance(found, dict):
        # Fields that are null count as absent, as everywhere else.
        filled = any(each is not None for each in found.values())
        return 'begin each item with "-"' if filled else "write []"
    return "write []" if found == "" else "put it in brackets"


def _hint_for_object(found: Any) -> str:
    if found == []:
        return "write {}"
    if _is_only_item(found):
        return 'leave out the "-"'
    if isinstance(found, str) and _CROWDED.fullmatch(found):
        return "put a space behind the colon"
    return ""


def _is_only_item(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict)
