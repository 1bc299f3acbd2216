"""Output of verbs: results on stdout, everything else on stderr.

JSON is the same on a terminal and in a file. Text is coloured only on a terminal, and not if `NO_COLOR` is set
(https://no-color.org) or the terminal is dumb.

Names and messages come from manifests and clusters, where anyone may have written them. So control characters are
escaped in all output: a name must not control the terminal.
"""

import enum
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

import msgspec

from pumice.api.fields import plain


class Format(enum.StrEnum):
    """Output forms of a result."""

    TEXT = "text"
    JSON = "json"


class Form(enum.StrEnum):
    """Output forms of a command about some objects."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class ListForm(enum.StrEnum):
    """Output forms of a list of objects."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


_CODES = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bold": "1",
    "dim": "2",
}
_COLOUR = re.compile(rf"(\x1b\[(?:0|{'|'.join(_CODES.values())})m)")


COLOURS = ("cyan", "green", "yellow", "blue", "magenta")
"""Colours of names of pods or containers in front of their output, one after the other."""


def coloured(stream: TextIO | None = None) -> bool:
    """True if a stream (stdout by default) supports colours."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """The escaped text in a colour (`red`, `green`, …, `bold`, `dim`), if the stream supports colours."""
    text = plain(text)
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if coloured(stream) else text


def write(text: str) -> None:
    """Print a result with a line end; other control characters are escaped."""
    sys.stdout.write(f"{_escaped(text, sys.stdout)}\n")


def note(text: str) -> None:
    """Print a message that is not a result: progress, remarks, errors. Control characters except line ends are escaped."""
    sys.stderr.write(f"{_escaped(text, sys.stderr)}\n")


def write_document(text: str) -> None:
    """Print a result for other programs with a line end: JSON or YAML without control characters."""
    sys.stdout.write(f"{text}\n")


def write_json(value: Any) -> None:
    """Print a result as JSON, indented."""
    write_document(_indented(value))


def write_json_list(values: Iterable[Any], *, header: Mapping[str, Any] | None = None) -> None:
    """Print a list as JSON, indented, in the form of `write_json`.

    Each entry is encoded and written before the next one is taken, so memory does not depend on their number. Nothing is
    written before the first one is there: if taking it fails, a message on stderr must be all that is printed.

    Args:
        values: The entries.
        header: Fields of an object that has the list as its last field, `items`; None for the list alone.
    """
    opening, line, closing = "[", "\n", "]"
    if header is not None:
        fields = _indented(header).removesuffix("\n}")
        opening, line, closing = f'{fields},\n  "items": [', "\n  ", "]\n}"
    before = opening
    for value in values:
        entry = _indented(value).replace("\n", f"{line}  ")
        sys.stdout.write(f"{before}{line}  {entry}")
        before = ","
    write_document(f"{opening}{closing}" if before is opening else f"{line}{closing}")


def _indented(value: Any) -> str:
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair, as in file names that are not UTF-8
        return json.dumps(msgspec.to_builtins(value), indent=2)
    return json_text(msgspec.json.format(encoded, indent=2))


def json_line(value: Any) -> str:
    """A value as one line of JSON."""
    return json_text(msgspec.json.encode(value))


def json_text(encoded: bytes) -> str:
    r"""JSON as text; what is not printable becomes `\u009b`, which JSON reads as the same."""
    return "\n".join(
        line if line.isprintable() else "".join(map(_escaped_in_json, line))
        for line in encoded.decode().split("\n")
    )


def dump(documents: Iterable[Any]) -> str:
    """Write values as YAML documents without control characters, which Kubernetes reads with the intended types."""
    documents = list(documents)
    text = _dumped(documents, allow_unicode=True)
    if text.replace("\n", "").isprintable():
        return text
    return _dumped(documents, allow_unicode=False)


def _dumped(documents: list[Any], *, allow_unicode: bool) -> str:
    import yaml

    text: str = yaml.dump_all(
        documents,
        Dumper=_dumper(),
        sort_keys=False,
        width=100,
        explicit_start=True,
        allow_unicode=allow_unicode,
    )
    return text


@functools.cache
def _dumper() -> type:
    """The safe dumper, in C where there is one, which quotes strings that Kubernetes would read as other types."""
    import yaml

    from pumice.api import scalars

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    numbers = [(f"{scalars.TAG}int", scalars.INTEGER), (f"{scalars.TAG}float", scalars.FLOAT)]

    class Dumper(base):  # type: ignore[misc]
        def ignore_aliases(self, _: Any) -> bool:
            return True  # shared parts are written in full

        def represent_text(self, text: str) -> Any:
            style = "|" if "\n" in text else None
            return self.represent_scalar(f"{scalars.TAG}str", text, style=style)

    Dumper.yaml_implicit_resolvers = {
        first: [*known, *(numbers if first in scalars.NUMERIC else ())]
        for first, known in base.yaml_implicit_resolvers.items()
    }
    Dumper.add_representer(str, Dumper.represent_text)
    return Dumper


def _escaped_in_json(character: str) -> str:
    """The UTF-16 escapes of a character that is not printable, as JSON has them."""
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _escaped(text: str, stream: TextIO) -> str:
    """Text without control characters except colours, if the stream supports them."""
    if text.isprintable():
        return text
    parts = _COLOUR.split(text) if coloured(stream) else [text]
    return "".join(
        part if number % 2 else "\n".join(map(plain, part.split("\n")))
        for number, part in enumerate(parts)
    )


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    colours: Mapping[str, str] | None = None,
) -> str:
    """A table: columns have the width of their widest cell, with two blanks between them; the last is not padded.

    Args:
        header: Names of the columns.
        rows: The cells of each row.
        colours: The style of a cell, by its whole text, if stdout supports colours.
    """
    lines = [[cell.upper() for cell in header], *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    styles = colours if colours and coloured() else {}

    def padded(cell: str, width: int) -> str:
        style = styles.get(cell)
        return f"{paint(cell, style)}{' ' * (width - len(cell))}" if style else cell.ljust(width)

    text = [
        "  ".join(padded(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([paint(text[0], "bold"), *text[1:]])


class ListPrinter:
    """Prints a list, and prints it again after a change."""

    def __init__(self, form: ListForm, watching: bool) -> None:
        """Create a printer.

        Args:
            form: The form.
            watching: Whether the list is printed again when it changes; JSON is then one line for each list.
        """
        self._form = form
        self._watching = watching
        self._printed: str | None = None

    def show(
        self, data: dict[str, Any], names: Sequence[str], text: Callable[[], str], *remarks: str
    ) -> None:
        """Print a list, unless it equals the last one.

        Args:
            data: The list as data.
            names: Names of the objects, as `RESOURCE/NAME`.
            text: Makes the table.
            remarks: What is missing in the list or was ignored, for stderr; empty ones are left out.
        """
        line = json_line(data)
        if line == self._printed:
            return
        match self._form:
            case ListForm.JSON if self._watching:
                write_document(line)  # one document a line, for programs that read as they come
            case ListForm.JSON | ListForm.YAML | ListForm.NAME:
                write_result(Form(self._form.value), data, names, text)
            case _:
                write(("" if self._printed is None else "\n") + text())
        sys.stdout.flush()
        for remark in remarks:
            if remark and self._printed is None:
                note(plain(remark))
        self._printed = line


def write_result(form: Form, data: Any, names: Sequence[str], text: Callable[[], str]) -> None:
    """Print a result in a form."""
    match form:
        case Form.JSON:
            write_json(data)
        case Form.YAML:
            write_document(dump([msgspec.to_builtins(data)]).rstrip("\n"))
        case Form.NAME:
            for name in names:
                write(name)
        case Form.TEXT:
            write(text())
