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


def test_keys_that_have_become_smaller_are_noticed_when_the_epoch_changes() -> None:
    """What lost something since it was pushed comes before the others; without a new epoch, keys may only grow."""
    shares = {"a": 1, "b": 2, "c": 3}
    epoch = [0]
    line: Line[str] = Line(lambda name: (shares[name], name), lambda: epoch[0])
    for name in shares:
        line.push(name)
    shares["c"] = 0
    assert line.pop() == "a"
    epoch[0] += 1
    assert [line.pop() for _ in range(2)] == ["c", "b"]
