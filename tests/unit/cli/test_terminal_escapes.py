"""No verb prints what a terminal acts on, whatever the names and messages say."""

import io
import json
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pumice.cli.output import (
    dump,
    json_text,
    note,
    paint,
    table,
    write,
    write_json,
    write_json_list,
)
from tests.kit.builders import job, node, pod, pod_group, queue, task
from tests.unit.cli.conftest import Pumice, texts

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e\x9b1A\r"
FORGED = "train\nCycle 2"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


KINDS = pytest.mark.parametrize("kind", [io.StringIO, Terminal], ids=["pipe", "terminal"])


def streams(kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What stands for stdout and stderr from now on; in the test itself, since pytest captures them too."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = kind()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def left(text: str) -> str:
    """What a text holds but printable characters and line ends, colours of our own taken out."""
    for code in ("0", "1", "31"):
        text = text.replace(f"\x1b[{code}m", "")
    return "".join(each for each in text if not each.isprintable() and each != "\n")


@KINDS
def test_text_is_escaped_and_keeps_its_lines(
    kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdout = streams(kind, monkeypatch)
    write(f"one {HOSTILE}\ntwo {paint(HOSTILE, 'red')}")
    note(HOSTILE)
    printed = stdout.getvalue()
    assert not left(printed)
    assert printed.count("\n") == 3
    assert "\\x1b]0;owned\\x07" in printed
    assert ("\x1b[31m" in printed) == stdout.isatty()


@KINDS
def test_cells_of_tables_are_one_line_each(
    kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdout = streams(kind, monkeypatch)
    write(table(("pod", "why"), [(FORGED, HOSTILE)]))
    assert stdout.getvalue().count("\n") == 2
    assert not left(stdout.getvalue())


def test_a_colour_in_a_name_is_no_colour_where_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    write("\x1b[31mred")
    assert stream.getvalue() == "\\x1b[31mred\n"


@given(st.text())
def test_documents_hold_what_they_held(text: str) -> None:
    value = {"name": text, text: [HOSTILE]}
    as_json, as_yaml = json_text(json.dumps(value, ensure_ascii=False).encode("utf-8")), dump([value])  # fmt: skip
    assert not left(as_json)
    assert not left(as_yaml)
    assert json.loads(as_json) == value
    assert yaml.safe_load(as_yaml) == value


@KINDS
def test_json_is_escaped(kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = streams(kind, monkeypatch)
    write_json({HOSTILE: "\U000e0001"})
    assert not left(stdout.getvalue())
    assert json.loads(stdout.getvalue()) == {HOSTILE: "\U000e0001"}


@given(st.lists(st.recursive(st.text(), st.lists)), st.sampled_from([None, {"kind": "List"}]))
def test_a_list_written_entry_by_entry_has_the_same_form(
    values: list[object], header: dict[str, str] | None
) -> None:
    stdout = sys.stdout
    try:
        whole = sys.stdout = io.StringIO()
        write_json(values if header is None else header | {"items": values})
        parts = sys.stdout = io.StringIO()
        write_json_list(iter(values), header=header)
    finally:
        sys.stdout = stdout
    assert parts.getvalue() == whole.getvalue()


def test_half_of_a_surrogate_pair_is_escaped_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reads file names that are not UTF-8 so."""
    stdout = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stdout)
    write_json_list([{"file": "\udcff.yaml"}])
    assert stdout.getvalue().isascii()
    assert json.loads(stdout.getvalue()) == [{"file": "\udcff.yaml"}]


@pytest.mark.parametrize(
    "command",
    [
        "simulate --state - --explain",
        "simulate --state - -o json",
        "migrate check --state -",
        "migrate check --state - -o json",
        "lint - --changes",
        "lint - -o json",
        "lint - -o github",
        "render -",
        "render - -o json",
    ],
)
def test_no_verb_prints_names_as_they_are(pumice: Pumice, command: str) -> None:
    """Of objects that no API server would store: files come from anywhere."""
    state = texts(
        node(HOSTILE),
        queue(HOSTILE),
        pod_group(HOSTILE, queue=HOSTILE, phase="Inqueue"),
        pod(FORGED + HOSTILE, group=HOSTILE, cpu="1"),
        pod_group(f"waits{HOSTILE}", 3, queue=HOSTILE, phase="Inqueue"),
        pod(HOSTILE, group=f"waits{HOSTILE}", cpu="1"),
        job(HOSTILE, [task(HOSTILE, cpu=HOSTILE)], plugins={HOSTILE: [HOSTILE]}, queue=HOSTILE),
        job("wired", [task("a", spec={HOSTILE: HOSTILE})], annotations={"note": HOSTILE}),
    )
    ran = pumice(*command.split(), stdin=state)
    assert not left(ran.out + ran.err)
    assert "owned" in ran.out + ran.err
