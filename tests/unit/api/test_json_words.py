"""Values of JSON in words."""

import pytest

from pumice.api.json_words import kind_of, shown


@pytest.mark.parametrize(
    ("value", "kind", "in_full"),
    [
        ("yes", "a string", 'the string "yes"'),
        ("x" * 101, "a string", f'the string "{"x" * 100}…"'),
        (True, "a boolean", "the boolean true"),
        (False, "a boolean", "the boolean false"),
        (3, "an integer", "the integer 3"),
        (0.5, "a number", "the number 0.5"),
        ([1], "a list", "a list"),
        ({"a": 1}, "an object", "an object"),
        (None, "nothing", "nothing"),
    ],
)
def test_every_value_has_words(value: object, kind: str, in_full: str) -> None:
    assert (kind_of(value), shown(value)) == (kind, in_full)
