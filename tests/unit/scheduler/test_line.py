"""Waiting lines whose keys grow."""

import pytest

from pumice.scheduler.line import Line


def test_the_smallest_key_comes_first() -> None:
    line: Line[str] = Line(len)
    for word in ("ccc", "a", "bb"):
        line.push(word)
    assert len(line) == 3
    assert [line.pop() for _ in range(3)] == ["a", "bb", "ccc"]


def test_keys_that_have_grown_are_noticed() -> None:
    """What was pushed with share 0 and has used something since goes behind the others."""
    shares = {"a": 0, "b": 1, "c": 2}
    line: Line[str] = Line(lambda name: (shares[name], name))
    for name in shares:
        line.push(name)
    shares["a"] = 5
    assert [line.pop() for _ in range(3)] == ["b", "c", "a"]


def test_an_empty_line() -> None:
    with pytest.raises(IndexError):
        Line(len).pop()
