"""What verbs print: results on stdout, everything else on stderr.

JSON is the same wherever it goes. Text is coloured on a terminal only, and not at all where
`NO_COLOR` is set (https://no-color.org) or the terminal is a dumb one.
"""

import enum
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import msgspec

__all__ = ["Format", "coloured", "json_line", "note", "paint", "table", "write", "write_json"]


class Format(enum.StrEnum):
    """Forms of a result."""

    TEXT = "text"
    JSON = "json"


_CODES = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "bold": "1", "dim": "2"}


def coloured(stream: TextIO | None = None) -> bool:
    """Whether a stream (stdout by default) takes colours."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a colour (`red`, `green`, …, `bold`, `dim`) where the stream takes colours."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if coloured(stream) else text


def write(text: str) -> None:
    """Print a result, with a line end."""
    sys.stdout.write(f"{text}\n")


def note(text: str) -> None:
    """Print what is no result: progress, remarks, errors."""
    sys.stderr.write(f"{text}\n")


def write_json(value: Any) -> None:
    """Print a result as JSON, indented."""
    write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def json_line(value: Any) -> str:
    """A value as one line of JSON."""
    return msgspec.json.encode(value).decode()


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, two blanks between them; the last is not padded."""
    lines = [[cell.upper() for cell in header], *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([paint(text[0], "bold"), *text[1:]])
