"""What YAML's scalars stand for; `cli/test_documents.py` shows them in documents."""

import pytest

from pumice.api.scalars import ScalarError, plain, tagged


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("NULL", None),
        ("nUll", "nUll"),
        ("On", True),
        ("oN", "oN"),
        ("NO", False),
        ("n", "n"),
        ("+12", 12),
        ("-0x1F", -31),
        ("0b101", 5),
        ("-017", -15),
        ("0", 0),
        ("1__0", 10),
        ("0x_", "0x_"),
        ("1e400x", "1e400x"),
        ("-.5e+1", -5),
        ("1.", 1),
        ("1.50", 1.5),
        ("1e20", 10**20),
        ("1e21", 1e21),
        (".", "."),
        ("-", "-"),
        ("=", "="),
        ("<<", "<<"),
        ("1.2.3", "1.2.3"),
        ("12e03", 12000),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_without_quotes(text: str, expected: object) -> None:
    found = plain(text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".NaN", "1e999"])
def test_json_has_no_such_number(text: str) -> None:
    with pytest.raises(ScalarError, match="cannot be written as JSON"):
        plain(text)


@pytest.mark.parametrize(
    ("tag", "text", "expected"),
    [
        ("str", "12", "12"),
        ("timestamp", "2024-01-01", "2024-01-01"),
        ("int", "0x10", 16),
        ("float", "3", 3),
        ("bool", "yes", True),
        ("null", "~", None),
    ],
)
def test_with_a_tag(tag: str, text: str, expected: object) -> None:
    found = tagged(f"tag:yaml.org,2002:{tag}", text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("tag", "text", "message"),
    [
        ("tag:yaml.org,2002:int", "two", "'two' is no !!int"),
        ("tag:yaml.org,2002:bool", "maybe", "'maybe' is no !!bool"),
        ("tag:yaml.org,2002:null", "0", "'0' is no !!null"),
        ("tag:yaml.org,2002:float", ".nan", "cannot be written as JSON"),
        ("tag:yaml.org,2002:binary", "aGk=", "tag !!binary has no counterpart"),
        ("!mine", "x", "tag !mine has no counterpart"),
    ],
)
def test_what_is_not_as_it_is_tagged_is_refused(tag: str, text: str, message: str) -> None:
    with pytest.raises(ScalarError, match=message):
        tagged(tag, text)
