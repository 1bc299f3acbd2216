"""YAML is read as kubectl reads it, and written so that kubectl reads it back."""

from typing import Any

import pytest
import yaml

from pumice.cli.documents import DocumentError, dump, parse


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
        ("08", 8.0),
        ("1e3", 1000.0),
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


def test_keys_become_text() -> None:
    assert value("1: a\ntrue: b\n1.5: c\n") == {"1": "a", "true": "b", "1.5": "c"}


def test_merge_keys_may_be_overridden() -> None:
    text = "base: &base {a: 1, b: 1}\ndeep: [{x: &x {<<: *base, b: 2}}]\nlast: {<<: *x, c: 3}\n"
    assert value(text)["last"] == {"a": 1, "b": 2, "c": 3}


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
        (b"? [a]\n: b\n", 1, 1, "a key must be text"),
        (b"a:\n\t- b\n", 1, 2, "cannot start any token"),
        (b"a: \x00\n", 1, None, "control characters"),
        (b"[" * 5000, 1, None, ""),
        (b'{"a": 1,', 1, None, ""),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    raw: bytes, document: int, line: int | None, message: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        list(parse(raw))
    assert caught.value.document == document
    assert line is None or caught.value.line == line
    assert message in str(caught.value)


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
