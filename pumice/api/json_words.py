"""Values of JSON in the words of messages, which people read who write YAML."""

from collections.abc import Sequence

__all__ = ["either", "kind_of", "quoted", "shown"]

_KINDS: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    type(None): "nothing",
}
_LONGEST = 100


def kind_of(value: object) -> str:
    """What a value is, such as `a text`, whatever it says."""
    return _KINDS.get(type(value), "an object")


def quoted(text: str) -> str:
    """A text as messages show it, cut to what a line can hold."""
    return f'"{text}"' if len(text) <= _LONGEST else f'"{text[:_LONGEST]}…"'


def shown(value: object) -> str:
    """A value that is of a wrong type: what it is and, where it has no parts, what it says."""
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"the number {value}" if isinstance(value, int | float) else kind_of(value)


def either(known: Sequence[str]) -> str:
    """The texts of which one must stand somewhere, at least one; an empty one goes without saying."""
    known = [each for each in known if each]
    return f"{', '.join(known[:-1])} or {known[-1]}" if len(known) > 1 else known[0]
