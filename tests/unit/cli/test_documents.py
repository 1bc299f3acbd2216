"""YAML is read as kubectl reads it, and written so that kubectl reads it back."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.documents import MOST_UNREADABLE, parse, written
from pumice.api.scalars import ScalarError
from pumice.api.yaml_values import DocumentError
from pumice.cli.output import dump


def value(text: str) -> Any:
    [(_, _, found)] = parse(text.encode())
    return found


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        ("12", 12),
        ("-1", -1),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 15),
        ("1_000", 1000),
        ("08", 8),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("12:30", "12:30"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01", "2024-01-01"),
        ("10.0.0.1", "10.0.0.1"),
        ("1-2", "1-2"),
        ("500m", "500m"),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("'12'", "12"),
    ],
)
def test_scalars_are_what_kubectl_takes_them_for(scalar: str, expected: object) -> None:
    found = value(f"a: {scalar}")["a"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", ['{"a": 1.0}', '{"a": 1.0}{"a": 1e0}'])
def test_whole_numbers_of_json_are_integers_as_for_a_webhook(text: str) -> None:
    assert [type(found["a"]) for _, _, found in parse(text.encode())] in ([int], [int, int])


def test_keys_become_text() -> None:
    assert value("1: a\ntrue: b\n1.5: c\n") == {"1": "a", "true": "b", "1.5": "c"}


def test_merge_keys_may_be_overridden() -> None:
    text = "base: &base {a: 1, b: 1}\ndeep: [{x: &x {<<: *base, b: 2}}]\nlast: {<<: *x, c: 3}\n"
    assert value(text)["last"] == {"a": 1, "b": 2, "c": 3}


def test_of_several_merged_mappings_the_first_counts() -> None:
    text = "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b], z: 3}\n"
    assert value(text)["c"] == {"x": 1, "y": 2, "z": 3}
    assert value("{'<<': {x: 1}}") == {"<<": {"x": 1}}


def test_an_anchor_may_be_used_again() -> None:
    assert value("[&a 1, *a, &a x, *a, {*a : *a}]") == [1, 1, "x", "x", {"x": "x"}]


def test_tags() -> None:
    assert value("{a: !!str 12, b: ! yes, c: !!map {}, d: ! []}") == {
        "a": "12",
        "b": "yes",
        "c": {},
        "d": [],
    }


def test_documents_know_their_number_and_line() -> None:
    text = b"a: 1\n---\n# nothing\n---\nb: 2\n"
    assert list(parse(text)) == [(1, 1, {"a": 1}), (3, 5, {"b": 2})]


def test_concatenated_json_is_several_documents() -> None:
    assert list(parse(b'{"a": 1}\n{"b": 2}\n')) == [(1, 1, {"a": 1}), (2, 2, {"b": 2})]


def test_a_byte_order_mark_is_no_content() -> None:
    assert value("\ufeffa: 1") == {"a": 1}


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n---\n"])
def test_an_empty_text_has_no_documents(text: str) -> None:
    assert list(parse(text.encode())) == []


@pytest.mark.parametrize(
    ("raw", "document", "line", "message"),
    [
        (b"a: 1\nb: 2\na: 3\n", 1, 3, "key 'a' appears twice"),
        (b"ok: 1\n---\na: [1\nb: 2\n", 2, 4, "expected"),
        (b"a: &x [*x]\n", 1, None, "contains itself"),
        (b"a: .nan\n", 1, 1, "cannot be written as JSON"),
        (b"a: !!set {x}\n", 1, 1, "tag !!set"),
        (b"a: !custom x\n", 1, 1, "tag !custom"),
        (b"a: b\n\xc3(\n", 1, 2, "must be UTF-8 text, found byte 0xc3"),
        (b"a: !!str {}\n", 1, 1, "tag !!str"),
        (b"a: !!int two\n", 1, 1, "'two' is no !!int"),
        (b"a: *nobody\n", 1, 1, "found undefined alias"),
        (b"a: 1\n---\nb:\n  <<: 2\n", 2, 4, "expected a mapping or list of mappings for merging"),
        (b"1: a\n'1': b\n", 1, 2, "key '1' appears twice"),
        (b"? [a]\n: b\n", 1, 1, "a key must be a string, found a list"),
        (b"~: b\n", 1, 1, "a key must be a string, found nothing"),
        (b"a:\n\t- b\n", 1, 2, "found a tab where only spaces indent"),
        (b"a:\n  b: 1\n c: 2\n", 1, 3, "expected key: is the line indented as those above it?"),
        (
            b"a:\n  - b: 1\n   c: 2\n",
            1,
            3,
            "'-' indicator: is the line indented as those above it?",
        ),
        (
            b"a:\n  b: 1\n    c: 2\n",
            1,
            3,
            "is the line indented as those above it, and is a string",
        ),
        (b"a: @b\n", 1, 1, "cannot start any token"),
        (b'{"a": 1e400}', 1, 1, "number '1e400' cannot be written as JSON"),
        (b'{"a": 1}{"a": 1e400}', 2, None, ""),
        (b"a: \x00\n", 1, None, "control characters"),
        (b"[" * 5000, 1, None, ""),
        (b'{"a": 1,', 1, None, ""),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(
    raw: bytes, document: int, line: int | None, message: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        list(parse(raw))
    assert caught.value.document == document
    assert line is None or caught.value.line == line
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "document", "line", "column"),
    [
        (b'{"a": 1,}', 1, 1, 8),
        (b'{"a": [1,\n  2 ,\n]}', 1, 2, 5),
        (b'{"a": 1}\n{"a": 1,\n}', 2, 2, 8),
        (b'a: 1\n---\n{"a": {"b": 1, }}', 2, 3, 14),
        ('{"é": "😀",}'.encode(), 1, 1, 10),
    ],
)
def test_a_trailing_comma_in_json_is_refused(
    raw: bytes, document: int, line: int, column: int
) -> None:
    with pytest.raises(DocumentError, match="found a trailing comma before") as caught:
        list(parse(raw))
    error = caught.value
    assert (error.document, error.line, error.column) == (document, line, column)


@pytest.mark.parametrize("text", ["{a: 1,}", "{'a': 1,}", "a: [1,]", '{"a": 1, # one\n}'])
def test_a_trailing_comma_of_yaml_is_allowed(text: str) -> None:
    assert value(text)["a"] in (1, [1])


@pytest.mark.parametrize(
    ("raw", "values", "failed"),
    [
        (b"a: 1\n---\nb: [1\n---\nc: 2\n---\n\td: 3\n---\ne: 4\n", "ace", [(2, 4), (4, 7)]),
        (b'a: "x\n---\nb: 1\n', "b", [(1, 2)]),
        (b"a: 1\na: 2\n--- {b: 1}\n", "b", [(1, 2)]),
        (b"a: 1\n...\n---\n\tb\n---\nc: 1\n", "ac", [(2, 4)]),
        (b"a: &x [*x]\n---\nb: 1\n", "b", [(1, None)]),
        (b"a: \x00\n---\nb: 1\n", "b", [(1, None)]),
        (b"a: {{ x }}\n---\nb: 1\n", "b", [(1, 1)]),
        (b"{{- if x }}\na: 1\n{{- end }}\n", "", [(1, 1)]),
        (b'{"a": 1,}\n{"b": 2}\n', "b", [(1, 1)]),
        (b'{"a": 1}\n{"b": 2 x}\n{"c":\n  3}\n', "ac", [(2, 2)]),
        (b'{"a": 1}\n---\n{"b": 2,}\n---\n{"c": 3}\n', "ac", [(2, 3)]),
        ('é: "😀"\n---\n{"é": "😀",}\n---\nc: 3\n'.encode(), "éc", [(2, 3)]),
        (b"a: 1\n---\n\xff\n", "", [(1, 3)]),
    ],
)
def test_a_document_that_cannot_be_read_hides_no_other(
    raw: bytes, values: str, failed: list[tuple[int, int | None]]
) -> None:
    problems: list[DocumentError] = []
    found = list(parse(raw, problems.append))
    assert "".join(key for _, _, each in found for key in each) == values
    assert [(each.document, each.line) for each in problems] == failed
    assert sorted([*(number for number, _, _ in found), *(at for at, _ in failed)]) == list(
        range(1, len(found) + len(failed) + 1)
    )
    lines = raw.decode(errors="replace").split("\n")
    assert all(next(iter(each)) in lines[line - 1] for _, line, each in found)


@pytest.mark.parametrize("bad", ["---\n\tb: 1\n", '{"a": 1,}\n'])
def test_after_too_many_unreadable_documents_the_rest_is_not_read(bad: str) -> None:
    problems: list[DocumentError] = []
    text = f'{{"a": 1}}\n{bad * (MOST_UNREADABLE + 50)}' + '---\n{"a": 2}\n'
    assert [found for _, _, found in parse(text.encode(), problems.append)] == [{"a": 1}]
    *told, last = problems
    assert len(told) == MOST_UNREADABLE
    assert "the rest is not read" in str(last)
    assert (last.document, last.line) == (
        MOST_UNREADABLE + 2,
        MOST_UNREADABLE * bad.count("\n") + 2,
    )


def test_as_many_unreadable_documents_as_are_read_hide_no_other() -> None:
    problems: list[DocumentError] = []
    text = "---\n\tb: 1\n" * (MOST_UNREADABLE - 1) + "---\nc: 1\n"
    assert [found for _, _, found in parse(text.encode(), problems.append)] == [{"c": 1}]
    assert len(problems) == MOST_UNREADABLE - 1


def test_what_is_written_is_kept_with_its_line() -> None:
    text = (
        "a: &a\n  on: yes\n  n: 0x10\n  t: '7'\nb:\n  <<: *a\n  n: !!str 5\nl:\n- ~\n- .nan\n"
        "---\n---\n~\n"
    )
    [found] = written(text.encode())
    a, b, items = found["a"], found["b"], found["l"]
    assert (found.line, a.line, b.line, items.line, items[1].line) == (1, 1, 6, 9, 10)
    assert a == {"on": "yes", "n": "0x10", "t": "7"}
    assert [each.value() for each in a.values()] == [True, 16, "7"]
    assert b == {"on": "yes", "n": "5", "t": "7"}
    assert (b["n"].value(), b["n"].line, b["on"].line) == ("5", 7, 2)
    assert [each.is_null for each in (*items, a["t"])] == [True, False, False]
    with pytest.raises(ScalarError, match="cannot be written as JSON"):
        items[1].value()


def test_aliases_that_grow_beyond_measure_are_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(DocumentError, match="aliases expand"):
        list(parse("\n".join(lines).encode()))


@pytest.mark.parametrize(
    "text", ["1e3", "yes", "12:30", "2024-01-01", "08", "1_0", "", "~", "a: b", "two\nlines\n", "é"]
)
def test_what_is_written_is_read_back(text: str) -> None:
    written = dump([{"a": text}])
    assert value(written.removeprefix("---\n"))["a"] == text
    assert yaml.safe_load(written)["a"] == text


def test_shared_parts_are_written_out() -> None:
    part = {"x": 1}
    assert "&" not in dump([{"a": part, "b": part}])


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(TEXTS, parts, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_any_value_is_read_back(wanted: object) -> None:
    assert list(parse(dump([{"value": wanted}]).encode())) == [(1, 2, {"value": wanted})]


@given(VALUES, st.booleans(), st.sampled_from(["'", '"']))
def test_quotes_and_flow_change_nothing(wanted: object, flow: bool, quote: str) -> None:
    text = yaml.safe_dump(
        {"value": _as_text(wanted)}, default_flow_style=flow, default_style=quote, width=40
    )
    assert value(text) == {"value": _as_text(wanted)}


def _as_text(part: Any) -> Any:
    """A value whose scalars are texts, so that quotes leave them what they are."""
    if isinstance(part, dict):
        return {key: _as_text(each) for key, each in part.items()}
    if isinstance(part, list):
        return [_as_text(each) for each in part]
    return str(part)
