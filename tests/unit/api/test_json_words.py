"""Values of JSON in words."""

import pytest

from pumice.api.json_words import kind_of, shown


@pytest.mark.parametrize(
    ("value", "kind", "in_full"),
    [
        ("yes", "a text", 'the text "yes"'),
        ("x" * 101, "a text", f'the text "{"x" * 100}…"'),
        (True, "true or false", "true"),
        (False, "true or false", "false"),
        (3, "a number", "the number 3"),
        (0.5, "a number", "the number 0.5"),
        ([1], "a list", "a list"),
        ({"a": 1}, "an object", "an object"),
        (None, "nothing", "nothing"),
    ],
)
def test_every_value_has_words(value: object, kind: str, in_full: str) -> None:
    assert (kind_of(value), shown(value)) == (kind, in_full)
