"""Output of commands about objects in a cluster: tables, JSON and YAML with stable keys, or names only."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from pumice.api.fields import plain
from pumice.cli.output import Form, ListForm, json_line, note, write, write_document, write_json

__all__ = ["ListPrinter", "age", "write_result"]

Data = dict[str, Any]


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
        self, data: Data, names: Sequence[str], text: Callable[[], str], remark: str = ""
    ) -> None:
        """Print a list, unless it equals the last one.

        Args:
            data: The list as data.
            names: Names of the objects, as `RESOURCE/NAME`.
            text: Makes the table.
            remark: What is missing in the list, for stderr.
        """
        line = json_line(data)
        if line == self._printed:
            return
        match self._form:
            case ListForm.JSON if self._watching:
                write_document(line)
            case ListForm.JSON | ListForm.YAML | ListForm.NAME:
                write_result(Form(self._form.value), data, names, text)
            case _:
                write(("" if self._printed is None else "\n") + text())
        sys.stdout.flush()
        if remark and self._printed is None:
            note(plain(remark))
        self._printed = line


def write_result(form: Form, data: Any, names: Sequence[str], text: Callable[[], str]) -> None:
    """Print a result in a form."""
    match form:
        case Form.JSON:
            write_json(data)
        case Form.YAML:
            import msgspec

            from pumice.cli.files.dumping import dump

            write_document(dump([msgspec.to_builtins(data)]).rstrip("\n"))
        case Form.NAME:
            for name in names:
                write(name)
        case Form.TEXT:
            write(text())


def age(timestamp: str | None, now: float) -> str:
    """How long ago something was created, as kubectl shows it."""
    from pumice.api.durations import UNKNOWN, human_duration
    from pumice.api.meta import parse_time

    created = parse_time(timestamp)
    return UNKNOWN if created is None else human_duration(now - created)
