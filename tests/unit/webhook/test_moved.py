"""Where something stood before its list changed."""

from typing import Any

import pytest

from pumice.webhook.rules.updates import Moved


def at(old: list[Any], new: list[Any], index: int) -> str | None:
    return Moved({"spec": {"items": old}}, {"spec": {"items": new}}).before(
        f"spec.items[{index}].x"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("abc", "bc", [1, 2]),
        ("abc", "cba", [2, 1, 0]),
        ("abc", "xabc", [None, 0, 1, 2]),
        ("abc", "axc", [0, 1, 2]),  # b has changed
        ("abc", "axbc", [0, None, 1, 2]),
        ("aa", "aaa", [0, 1, None]),
        ("ab", "bb", [0, 1]),
        ("aaaa", "axay", [0, 1, 2, 3]),
        ("abab", "baba", [1, 0, 3, 2]),
        ("abcd", "acd", [0, 2, 3]),
        ("abb", "bb", [1, 2]),
        ("ab", "x", [0]),
        ("", "ab", [None, None]),
    ],
)
def test_an_item_is_known_again(old: str, new: str, expected: list[int | None]) -> None:
    """Each item is an object with nothing but a letter."""
    before, after = ([{"x": letter} for letter in word] for word in (old, new))
    found = [at(before, after, index) for index in range(len(after))]
    assert found == [None if each is None else f"spec.items[{each}].x" for each in expected]


def test_lists_in_lists_are_followed() -> None:
    old = {"groups": [{"name": "a"}, {"name": "b", "keys": ["x", "y", "z"]}]}
    new = {"groups": [{"name": "b", "keys": ["y", "z"]}]}
    # The group has changed, so it is taken for the one in its place, which had no keys.
    assert Moved(old, new).before("groups[0].keys[1]") is None
    new = {"groups": [{"name": "a"}, {"name": "b", "keys": ["y", "z"]}]}
    assert Moved(old, new).before("groups[1].keys[1]") == "groups[1].keys[2]"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "spec",
        "spec.gone.for[1].good",
        "spec.items[7]",
        "spec.items[x]",
        "spec.items.name",
        "spec.map.a.b[0]",
        "metadata.annotations[volcano.sh/hierarchy]",
        "items[0]",
        "[0]",
        "spec[0]",
    ],
)
def test_what_leads_nowhere_stays(path: str) -> None:
    old: dict[str, Any] = {"spec": {"items": [1, 2], "map": {"a.b": [1]}}}
    assert Moved(old, {"spec": {"items": [2], "map": {"a.b": [2, 1]}}}).before(path) == path
    assert Moved(None, None).before(path) == path
    assert Moved({"spec": 5}, old).before(path) == path
