"""Booleans in the spelling that Go reads: annotations, labels and arguments are written for it."""

__all__ = ["parse_bool"]

_READ = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


def parse_bool(text: str) -> bool | None:
    """Read a boolean; None if the text is not a boolean."""
    return _READ.get(text)
