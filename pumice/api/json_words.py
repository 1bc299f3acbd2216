"""Values of JSON in the words of messages, which people read who write YAML."""

__all__ = ["kind_of", "shown"]

_KINDS: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    type(None): "nothing",
}
_LONGEST = 60


def kind_of(value: object) -> str:
    """What a value is, such as `a text`, whatever it says."""
    return _KINDS.get(type(value), "an object")


def shown(value: object) -> str:
    """A value that is of a wrong type: what it is and, where it has no parts, what it says."""
    if isinstance(value, str):
        cut = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
        return f'the text "{cut}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"the number {value}" if isinstance(value, int | float) else kind_of(value)
