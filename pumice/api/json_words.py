"""How messages name types and values of JSON, with Kubernetes' words: string, integer, number, boolean, list, object."""

from collections.abc import Sequence

__all__ = ["either", "kind_of", "quoted", "shown"]

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
