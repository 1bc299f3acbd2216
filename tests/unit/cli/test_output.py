"""Text is coloured on terminals only; tables are as wide as their cells."""

import io
import sys

import pytest

from pumice.cli.output import ListForm, ListPrinter, paint, table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert paint("x", "red") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("x", "red") == "x"
    monkeypatch.setenv("NO_COLOR", "")
    assert paint("x", "red") != "x"
    monkeypatch.setenv("TERM", "dumb")
    assert paint("x", "red") == "x"


def test_no_colours_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert paint("x", "red") == "x"


def test_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert table(("pod", "node"), [("a-long-name", "n"), ("b", "")]) == (
        "POD          NODE\na-long-name  n\nb"
    )


def test_cells_of_a_table_are_coloured_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    rows = [("a", "Running", "x"), ("bb", "-", "Running late")]
    colours = {"Running": "green"}
    plain_text = table(("name", "phase", "why"), rows, colours)
    assert plain_text == "NAME  PHASE    WHY\na     Running  x\nbb    -        Running late"
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", Terminal())
    _, first, second = table(("name", "phase", "why"), rows, colours).splitlines()
    assert first == "a     \x1b[32mRunning\x1b[0m  x"
    assert second == "bb    -        Running late"


def test_yaml_of_a_watched_list_is_one_document_for_each_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = ListPrinter(ListForm.YAML, watching=True)
    for jobs in (1, 1, 2):
        printer.show({"jobs": jobs}, (), str)
    assert capsys.readouterr().out == "---\njobs: 1\n---\njobs: 2\n"
